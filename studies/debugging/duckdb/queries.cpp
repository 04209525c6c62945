// Runs some analytical queries in memory, and prints what they say: duckdb ROWS
#include "duckdb.hpp"
#include <cstdio>
#include <cstdlib>
int main(int argc, char **argv) {
    long rows = argc > 1 ? atol(argv[1]) : 200000;
    duckdb::DuckDB database(nullptr);
    duckdb::Connection connection(database);
    std::string n = std::to_string(rows);
    const std::string queries[] = {
        "SET threads TO 1",
        "CREATE TABLE item AS SELECT i AS id, i % 997 AS customer, (i * 7919) % 10007 AS price, 'name' || (i % 313) AS name, DATE '2020-01-01' + CAST(i % 1000 AS INTEGER) AS day FROM range(" + n + ") t(i)",
        "CREATE TABLE customer AS SELECT i AS id, 'customer ' || i AS name, i % 25 AS nation FROM range(997) t(i)",
        "SELECT nation, count(*), sum(price), avg(price) FROM item JOIN customer ON item.customer = customer.id GROUP BY nation ORDER BY nation",
        "SELECT name, max(price), min(day), count(DISTINCT customer) FROM item GROUP BY name ORDER BY 2 DESC, 1 LIMIT 10",
        "SELECT day, price, sum(price) OVER (PARTITION BY customer ORDER BY day ROWS 5 PRECEDING) s FROM item WHERE customer < 40 ORDER BY s DESC, day, price LIMIT 10",
        "SELECT upper(name), length(name) + customer AS k, count(*) FROM item WHERE name LIKE '%1%' AND price BETWEEN 100 AND 5000 GROUP BY ALL ORDER BY 3 DESC, 1, 2 LIMIT 10",
        "SELECT date_trunc('month', day) AS m, stddev(price), quantile_cont(price, 0.9) FROM item GROUP BY m ORDER BY m LIMIT 12",
        "SELECT * FROM (SELECT customer, price, row_number() OVER (PARTITION BY customer ORDER BY price DESC, id) r FROM item) WHERE r = 1 ORDER BY price DESC, customer LIMIT 10",
        "SELECT CAST('x' AS INTEGER)",
        "UPDATE item SET price = price + 1 WHERE id % 3 = 0",
        "DELETE FROM item WHERE id % 5 = 0",
        "SELECT count(*), sum(price) FROM item",
    };
    for (auto &query : queries) {
        auto result = connection.Query(query);
        std::printf("%s\n", result->ToString().c_str());
    }
}
