# Prints 40,000 commands for redis-cli, the same on every machine: strings, counters, lists, hashes, sets, sorted sets, streams, bits,
# places, scripts and transactions, none of whose answers depends on time or on the order of a hash table.

function random(limit) {
    state = (state * 1103515245 % 2147483648 + 12345) % 2147483648
    return int(state / 2147483648 * limit)
}

function value(words,    text) {
    for (text = "v" random(1000); words > 1; words--) text = text "-" random(100000)
    return text
}

BEGIN {
    state = 12345
    for (i = 0; i < 40000; i++) {
        kind = random(40)
        key = random(3000)
        few = random(100)
        if (kind < 6) print "SET string:" key, value(1 + random(8))
        else if (kind < 13) print "GET string:" key
        else if (kind < 14) print "MGET string:" key, "string:" random(3000), "string:" random(3000)
        else if (kind < 15) print "INCRBY counter:" few, random(1000)
        else if (kind < 16) print "APPEND string:" key, value(1)
        else if (kind < 18) print (random(2) ? "LPUSH" : "RPUSH"), "list:" few, value(2), value(1)
        else if (kind < 19) print (random(2) ? "LPOP" : "RPOP"), "list:" few
        else if (kind < 20) print "LRANGE list:" few, random(5), 5 + random(20)
        else if (kind < 22) print "HSET hash:" few, "field:" random(300), value(2)
        else if (kind < 24) print "HGET hash:" few, "field:" random(300)
        else if (kind < 25) print "SADD set:" few, random(800), random(800)
        else if (kind < 26) print "SISMEMBER set:" few, random(800)
        else if (kind < 27) print "SINTERCARD 2 set:" few, "set:" random(100)
        else if (kind < 29) print "ZADD sorted:" few, random(10000), "member:" random(400)
        else if (kind < 30) print "ZRANGEBYSCORE sorted:" few, random(5000), "+inf LIMIT 0 10 WITHSCORES"
        else if (kind < 31) print "ZRANK sorted:" few, "member:" random(400)
        else if (kind < 32) print "XADD stream:" few, i + 1 "-1", "name", value(1), "count", random(100)
        else if (kind < 33) print "XRANGE stream:" few, random(20000), "+ COUNT 5"
        else if (kind < 34) print "SETBIT bits:" few, random(4000), random(2)
        else if (kind < 35) print "BITCOUNT bits:" few
        else if (kind < 36) print "GEOADD places", random(360) - 180, random(160) - 80, "place:" random(500)
        else if (kind < 37) print "EVAL \"local n = redis.call('incr', KEYS[1]); return {n, #ARGV[1], string.rep(ARGV[1], 2)}\" 1 counted:" few, value(1)
        else if (kind < 38) print "PFADD loglog:" few, value(1), value(1)
        else if (kind < 39) print "DEL string:" key, "list:" random(1000)
        else printf "MULTI\nINCR counter:%d\nGET counter:%d\nEXEC\n", few, few
    }
}
