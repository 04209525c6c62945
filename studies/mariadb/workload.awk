# Prints some thousand statements of which each has the same answer on every machine: lookups by key and by index, ranges, joins, groups,
# changes in transactions, a loop.
BEGIN {
    print "CREATE TABLE accounts (id INT PRIMARY KEY, branch INT, balance INT, note VARCHAR(80), KEY (branch)) ENGINE=InnoDB;"
    print "CREATE TABLE branches (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB;"
    print "INSERT INTO branches SELECT seq, CONCAT('branch ', seq) FROM seq_1_to_100;"
    print "INSERT INTO accounts SELECT seq, 1 + seq % 100, seq * 7 % 1000, REPEAT(CHAR(97 + seq % 26), 40) FROM seq_1_to_20000;"
    for (i = 1; i <= 4000; i++) {
        key = 1 + i * 7919 % 20000
        print "SELECT balance FROM accounts WHERE id = " key ";"
        if (i % 8 == 0) print "SELECT SUM(balance) FROM accounts WHERE id BETWEEN " key " AND " key + 20 ";"
        if (i % 16 == 0) print "SELECT b.name, COUNT(*) FROM accounts a JOIN branches b ON b.id = a.branch WHERE a.id BETWEEN " key " AND " key + 10 " GROUP BY b.name ORDER BY b.name LIMIT 3;"
        if (i % 16 == 8) print "START TRANSACTION; UPDATE accounts SET balance = balance + 1, note = UPPER(note) WHERE id = " key "; COMMIT;"
        if (i % 64 == 0) print "INSERT INTO accounts VALUES (" 20000 + i ", 1, " i ", 'new'); DELETE FROM accounts WHERE id = " 20000 + i ";"
        if (i % 64 == 32) print "SELECT id, JSON_VALUE(CONCAT('{\"a\":', balance, '}'), '$.a') FROM accounts WHERE branch = " i % 100 " AND note LIKE 'b%' ORDER BY balance DESC, id LIMIT 2;"
        if (i % 256 == 0) {
            print "DELIMITER //"
            print "BEGIN NOT ATOMIC DECLARE n, s INT DEFAULT 0; WHILE n < 20 DO SET n = n + 1;"
            print "  SELECT s + SUM(balance) INTO s FROM accounts WHERE id BETWEEN n * 10 AND n * 10 + " i % 7 "; END WHILE; SELECT s; END//"
            print "DELIMITER ;"
        }
    }
    print "SELECT COUNT(*), SUM(balance), MD5(GROUP_CONCAT(note ORDER BY id SEPARATOR '')) FROM accounts WHERE id < 500;"
}
