/* A shop's database in memory, queried as an application would: many different short statements, each prepared anew, so
 * that parser, planner, code generator and virtual machine all run, over and over.
 *
 * usage: sqlite-bench [ROUNDS [SIZE]]       default 1000, some three seconds; SIZE in percent, 20 to 100
 *
 * Prints one checksum for each kind of statement: equal output means equal answers. Nothing in it depends on time, on
 * addresses or on the machine. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

enum { LINES_PER_ORDER = 3 };
/* For a SIZE of 100. */
static int customers = 2000, products = 500, orders = 6000, notes = 1500;

static sqlite3 *db;

/* ---- deterministic data ------------------------------------------------------------------------------------------ */

static uint64_t state = 0x9e3779b97f4a7c15u;

/* xorshift64*: the same numbers everywhere. */
static uint32_t random_below(uint32_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545f4914f6cdd1du) >> 32) % limit;
}

static const char *const words[] = {
    "amber",  "basket", "copper", "dolphin", "ember",  "falcon", "garnet", "harbor", "indigo", "jasmine", "kettle",
    "lantern", "marble", "nectar", "orchid", "pepper", "quartz", "raven",  "saffron", "timber", "umber",  "velvet",
    "willow", "xenon",  "yarrow", "zephyr", "anchor", "bramble", "cinder", "drift",  "elm",    "fjord",
};
enum { WORDS = sizeof words / sizeof *words };

static const char *const cities[] = {"Aarhus", "Bergen", "Cork", "Dresden", "Evora", "Fez", "Ghent", "Haarlem"};
enum { CITIES = sizeof cities / sizeof *cities };

static const char *word(void) { return words[random_below(WORDS)]; }

static void write_sentence(char *text, size_t size, int count) {
    size_t used = 0;
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", word());
}

/* ---- running statements ------------------------------------------------------------------------------------------ */

/* FNV-1a over every value of every row. */
static uint64_t mix(uint64_t sum, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) sum = (sum ^ byte[i]) * 0x100000001b3u;
    return sum;
}

static void fail(const char *sql) {
    fprintf(stderr, "sqlite-bench: %s: %s\n", sqlite3_errmsg(db), sql);
    exit(1);
}

static uint64_t mix_row(uint64_t sum, sqlite3_stmt *statement) {
    for (int column = 0; column < sqlite3_column_count(statement); column++) {
        const void *text = sqlite3_column_text(statement, column);
        if (text) sum = mix(sum, text, (size_t)sqlite3_column_bytes(statement, column));
        sum = mix(sum, "|", 1);
    }
    return sum;
}

/* Formats, prepares, runs and finalizes one statement; gives `sum` with its rows mixed in. */
static uint64_t query(uint64_t sum, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) fail(sql);
    int status;
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) sum = mix_row(sum, statement);
    if (status != SQLITE_DONE) fail(sql);
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return sum;
}

static void execute(const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail(sql);
}

/* ---- the shop ---------------------------------------------------------------------------------------------------- */

static void create_schema(void) {
    execute(
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, balance REAL DEFAULT 0,"
        "                       preferences TEXT, CHECK (balance > -1000000));"
        "CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT UNIQUE, price INTEGER, stock INTEGER);"
        "CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer(id), day TEXT,"
        "                       state TEXT DEFAULT 'new', total INTEGER DEFAULT 0);"
        "CREATE TABLE line (purchase INTEGER REFERENCES purchase(id) ON DELETE CASCADE, number INTEGER,"
        "                   product INTEGER REFERENCES product(id), quantity INTEGER, PRIMARY KEY (purchase, number))"
        "                   WITHOUT ROWID;"
        "CREATE TABLE audit (id INTEGER PRIMARY KEY, what TEXT, amount INTEGER);"
        "CREATE VIRTUAL TABLE note USING fts5(title, body);"
        "CREATE VIEW spending AS SELECT c.id, c.name, c.city, sum(p.total) AS spent, count(*) AS purchases"
        "  FROM customer c JOIN purchase p ON p.customer = c.id GROUP BY c.id;"
        "CREATE TRIGGER line_added AFTER INSERT ON line BEGIN"
        "  UPDATE purchase SET total = total + new.quantity * (SELECT price FROM product WHERE id = new.product)"
        "    WHERE id = new.purchase;"
        "END;"
        "CREATE TRIGGER state_changed AFTER UPDATE OF state ON purchase WHEN old.state <> new.state BEGIN"
        "  INSERT INTO audit (what, amount) VALUES (old.state || '>' || new.state, new.total);"
        "END;");
}

static void fill_customers(void) {
    for (int i = 1; i <= customers; i++) {
        char name[64];
        write_sentence(name, sizeof name, 2);
        query(0, "INSERT INTO customer VALUES (%d, %Q, %Q, %d.%02d, json_object('color', %Q, 'size', %d, 'tags', json_array(%Q, %Q)))",
              i, name, cities[random_below(CITIES)], random_below(500), random_below(100), word(), random_below(50), word(), word());
    }
}

static void fill_products(void) {
    for (int i = 1; i <= products; i++)
        query(0, "INSERT INTO product VALUES (%d, '%s %s %d', %d, %d)", i, word(), word(), i, 100 + random_below(9900), random_below(1000));
}

static void add_purchase(int id) {
    query(0, "INSERT INTO purchase (id, customer, day) VALUES (%d, %d, date('2024-01-01', '+%d days'))", id,
          1 + random_below(customers), random_below(365));
    for (int number = 0; number < LINES_PER_ORDER; number++)
        query(0, "INSERT INTO line VALUES (%d, %d, %d, %d)", id, number, 1 + random_below(products), 1 + random_below(9));
}

static void fill_notes(void) {
    for (int i = 0; i < notes; i++) {
        char body[512];
        write_sentence(body, sizeof body, 12 + (int)random_below(20));
        query(0, "INSERT INTO note (title, body) VALUES ('%s %d', %Q)", word(), i, body);
    }
}

static void fill(void) {
    create_schema();
    execute("BEGIN");
    fill_customers();
    fill_products();
    for (int id = 1; id <= orders; id++) add_purchase(id);
    fill_notes();
    execute("COMMIT");
    execute("CREATE INDEX purchase_customer ON purchase (customer, day);"
            "CREATE INDEX purchase_open ON purchase (day) WHERE state = 'new';"
            "CREATE INDEX line_product ON line (product);"
            "CREATE INDEX customer_city ON customer (city, name COLLATE NOCASE);"
            "CREATE INDEX customer_color ON customer (json_extract(preferences, '$.color'));"
            "ANALYZE; PRAGMA foreign_keys = ON;");
}

/* ---- what an application does with it ---------------------------------------------------------------------------- */

static uint64_t look_up(uint64_t sum) {
    for (int i = 0; i < 6; i++) {
        sum = query(sum, "SELECT name, city, balance FROM customer WHERE id = %d", 1 + random_below(customers));
        sum = query(sum, "SELECT p.id, p.day, p.total FROM purchase p WHERE p.customer = %d ORDER BY p.day DESC LIMIT 3",
                    1 + random_below(customers));
        sum = query(sum, "SELECT price * %d, stock FROM product WHERE id IN (%d, %d, %d) ORDER BY name", random_below(9),
                    1 + random_below(products), 1 + random_below(products), 1 + random_below(products));
    }
    return sum;
}

static uint64_t join(uint64_t sum) {
    int first = 1 + (int)random_below(customers - 10);
    sum = query(sum,
                "SELECT c.name, pr.name, l.quantity FROM customer c JOIN purchase p ON p.customer = c.id "
                "JOIN line l ON l.purchase = p.id JOIN product pr ON pr.id = l.product "
                "WHERE c.id BETWEEN %d AND %d AND pr.price > %d ORDER BY pr.price, l.quantity DESC",
                first, first + 9, random_below(5000));
    sum = query(sum,
                "SELECT c.city, p.state FROM customer c LEFT JOIN purchase p ON p.customer = c.id AND p.total > %d "
                "WHERE c.id = %d AND NOT EXISTS (SELECT 1 FROM line WHERE purchase = p.id AND product = %d)",
                random_below(20000), 1 + random_below(customers), 1 + random_below(products));
    return query(sum, "SELECT id FROM customer WHERE city = %Q AND name LIKE '%s%%' UNION "
                      "SELECT customer FROM purchase WHERE id BETWEEN %d AND %d ORDER BY 1",
                 cities[random_below(CITIES)], word(), first, first + 20);
}

static uint64_t aggregate(uint64_t sum) {
    int first = 1 + (int)random_below(customers - 40);
    sum = query(sum, "SELECT city, count(*), round(avg(balance), 2), max(name) FROM customer WHERE id BETWEEN %d AND %d "
                     "GROUP BY city HAVING count(*) > 1 ORDER BY 2 DESC, 1", first, first + 40);
    sum = query(sum, "SELECT name, spent, purchases FROM spending WHERE id BETWEEN %d AND %d AND spent > %d", first, first + 5,
                random_below(10000));
    sum = query(sum, "SELECT strftime('%%m', day) AS month, count(DISTINCT customer), sum(total), group_concat(state) "
                     "FROM purchase WHERE customer BETWEEN %d AND %d GROUP BY month", first, first + 8);
    return query(sum, "SELECT id, total, rank() OVER (PARTITION BY state ORDER BY total), sum(total) OVER (ORDER BY id ROWS 2 PRECEDING) "
                      "FROM purchase WHERE customer BETWEEN %d AND %d", first, first + 6);
}

static uint64_t search_text(uint64_t sum) {
    sum = query(sum, "SELECT title, snippet(note, 1, '[', ']', '..', 5) FROM note WHERE note MATCH '%s AND %s' ORDER BY rank LIMIT 3",
                word(), word());
    sum = query(sum, "SELECT count(*) FROM note WHERE note MATCH 'body: \"%s %s\" OR %s*'", word(), word(), "quar");
    return query(sum, "SELECT upper(substr(name, 1, 5)), instr(name, 'a'), replace(city, 'e', '3'), printf('%%08.3f', balance) "
                      "FROM customer WHERE id > %d AND name GLOB '*%s*' LIMIT 2", random_below(customers - 200), word());
}

static uint64_t read_json(uint64_t sum) {
    sum = query(sum, "SELECT id, preferences ->> '$.size', json_array_length(preferences, '$.tags') FROM customer "
                     "WHERE json_extract(preferences, '$.color') = %Q ORDER BY id LIMIT 4", word());
    return query(sum, "SELECT j.key, j.value FROM customer, json_each(customer.preferences) j WHERE customer.id = %d",
                 1 + random_below(customers));
}

static uint64_t recurse(uint64_t sum) {
    int first = 1 + (int)random_below(products - 20);
    sum = query(sum, "WITH RECURSIVE day(d) AS (SELECT date('2024-%02d-01') UNION ALL SELECT date(d, '+1 day') FROM day LIMIT 10) "
                     "SELECT d, (SELECT count(*) FROM purchase WHERE state = 'new' AND day = d) FROM day", 1 + random_below(12));
    return query(sum, "WITH best AS (SELECT product, sum(quantity) AS sold FROM line WHERE product BETWEEN %d AND %d GROUP BY product) "
                      "SELECT name, sold, CASE WHEN sold > 90 THEN 'hot' WHEN sold > 60 THEN 'warm' ELSE 'cold' END "
                      "FROM best JOIN product ON id = product ORDER BY sold DESC, name LIMIT 3",
                 first, first + 12);
}

/* Two purchases more and two fewer each round, so that the tables keep their size. */
static uint64_t change(uint64_t sum, int round) {
    int id = orders + 1 + 2 * round;
    execute("BEGIN");
    add_purchase(id);
    add_purchase(id + 1);
    sum = query(sum, "UPDATE purchase SET state = 'paid' WHERE customer = %d RETURNING id, total", 1 + random_below(customers));
    sum = query(sum, "UPDATE product SET stock = max(stock - %d, 0) WHERE id = %d", random_below(9), 1 + random_below(products));
    sum = query(sum, "INSERT INTO product VALUES (%d, %Q, %d, 0) ON CONFLICT (id) DO UPDATE SET price = (price + excluded.price) / 2",
                1 + random_below(products), word(), 100 + random_below(9900));
    sum = query(sum, "UPDATE customer SET preferences = json_set(preferences, '$.size', %d) WHERE id = %d", random_below(50),
                1 + random_below(customers));
    sum = query(sum, "DELETE FROM purchase WHERE id IN (%d, %d)", 1 + 2 * round, 2 + 2 * round);
    execute("SAVEPOINT doubtful");
    sum = query(sum, "UPDATE customer SET balance = balance - %d WHERE city = %Q AND id %% 50 = %d", random_below(90),
                cities[random_below(CITIES)], random_below(50));
    execute(round % 3 ? "RELEASE doubtful" : "ROLLBACK TO doubtful; RELEASE doubtful");
    execute("COMMIT");
    return sum;
}

static void shrink(int percent) {
    int *const sizes[] = {&customers, &products, &orders, &notes};
    for (int i = 0; i < 4; i++) *sizes[i] = *sizes[i] * percent / 100;
}

int main(int count, char **arguments) {
    int rounds = count > 1 ? atoi(arguments[1]) : 1000, size = count > 2 ? atoi(arguments[2]) : 100;
    if (size >= 20 && size <= 100) shrink(size);
    if (rounds < 1 || 2 * rounds > orders || size < 20 || size > 100) {
        fprintf(stderr, "usage: sqlite-bench [ROUNDS [SIZE]]   1 to %d rounds, 20 to 100 percent\n", orders / 2);
        return 2;
    }
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) fail("open");
    fill();
    uint64_t sums[7] = {0};
    for (int round = 0; round < rounds; round++) {
        sums[0] = look_up(sums[0]);
        sums[1] = join(sums[1]);
        sums[2] = aggregate(sums[2]);
        sums[3] = search_text(sums[3]);
        sums[4] = read_json(sums[4]);
        sums[5] = recurse(sums[5]);
        sums[6] = change(sums[6], round);
    }
    static const char *const kinds[] = {"look up", "join", "aggregate", "search text", "read json", "recurse", "change"};
    for (int kind = 0; kind < 7; kind++) printf("%-12s %016llx\n", kinds[kind], (unsigned long long)sums[kind]);
    query(0, "PRAGMA optimize");
    printf("%-12s %016llx\n", "tables", (unsigned long long)query(query(0, "SELECT * FROM audit"), "SELECT * FROM purchase"));
    return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
