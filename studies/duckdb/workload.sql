SET threads = 1
SET preserve_insertion_order = true
CREATE TABLE customers AS SELECT i AS id, 'customer ' || i AS name, (hash(i) % 25)::INTEGER AS nation, (hash(i + 7) % 1000000) / 100 AS balance FROM range(3000) t(i)
CREATE TABLE orders AS SELECT i AS id, (hash(i) % 3000)::INTEGER AS customer, DATE '1992-01-01' + (hash(i + 1) % 2400)::INTEGER AS placed, ['O', 'F', 'P'][1 + (hash(i + 2) % 3)::INTEGER] AS status, (hash(i + 3) % 5)::INTEGER AS priority FROM range(20000) t(i)
CREATE TABLE items AS SELECT (hash(i) % 20000)::INTEGER AS order_id, (hash(i + 1) % 2000)::INTEGER AS part, 1 + (hash(i + 2) % 50)::INTEGER AS quantity, (hash(i + 3) % 100000) / 100 AS price, (hash(i + 4) % 11) / 100 AS discount, DATE '1992-01-01' + (hash(i + 5) % 2500)::INTEGER AS shipped, 'comment ' || (hash(i + 6) % 997) || repeat('x', (hash(i) % 20)::INTEGER) AS comment FROM range(80000) t(i)
CREATE TABLE parts (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, size INTEGER CHECK (size > 0), type VARCHAR)
INSERT INTO parts SELECT i, 'part ' || i, 1 + (hash(i) % 50)::INTEGER, ['brass', 'steel', 'copper', 'tin'][1 + (hash(i + 9) % 4)::INTEGER] FROM range(2000) t(i)
INSERT INTO parts VALUES (17, 'again', 1, 'tin')
INSERT INTO parts VALUES (5000, NULL, 1, 'tin')
INSERT INTO parts VALUES (5001, 'flat', 0, 'tin')
SELECT count(*), sum(quantity), round(sum(price), 2), min(shipped), max(shipped) FROM items
SELECT status, count(*), sum(quantity), round(sum(price * (1 - discount)), 2), round(avg(discount), 4) FROM items JOIN orders ON order_id = orders.id WHERE shipped < DATE '1998-01-01' GROUP BY status ORDER BY status
SELECT o.id, round(sum(price * (1 - discount)), 2) AS revenue, placed FROM customers c JOIN orders o ON c.id = o.customer JOIN items i ON o.id = i.order_id WHERE nation = 7 AND placed < DATE '1995-03-15' AND shipped > DATE '1995-03-15' GROUP BY o.id, placed ORDER BY revenue DESC, o.id LIMIT 10
SELECT priority, count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.shipped > o.placed + 60) GROUP BY priority ORDER BY priority
SELECT nation, round(sum(balance), 2) FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE priority = 0) GROUP BY nation ORDER BY 2 DESC, 1 LIMIT 8
SELECT type, avg(size), approx_count_distinct(part) > 0, median(price) FROM parts JOIN items ON parts.id = part GROUP BY type ORDER BY type
SELECT id, customer, rank() OVER (PARTITION BY customer ORDER BY placed, id), lag(placed) OVER (PARTITION BY customer ORDER BY placed, id) FROM orders WHERE customer < 4 ORDER BY customer, placed, id LIMIT 20
SELECT customer, round(avg(id) OVER (ORDER BY id ROWS BETWEEN 50 PRECEDING AND CURRENT ROW), 3) FROM orders ORDER BY id LIMIT 5 OFFSET 19990
WITH RECURSIVE steps(n, x) AS (SELECT 1, 27 UNION ALL SELECT n + 1, CASE WHEN x % 2 = 0 THEN x // 2 ELSE 3 * x + 1 END FROM steps WHERE x > 1) SELECT max(n), max(x) FROM steps
SELECT regexp_replace(comment, '[0-9]+', '#') AS shape, count(*) FROM items WHERE comment LIKE '%9%x' GROUP BY shape ORDER BY 2 DESC, 1 LIMIT 5
SELECT string_agg(upper(name), ',' ORDER BY id), list(size ORDER BY id), sum(levenshtein(name, 'part 100')) FROM parts WHERE id < 12
SELECT list_sort(list_distinct(list_transform(range(20), lambda x: x * x % 7))), {'a': 1, 'b': [1, 2]}, map([1, 2], ['x', 'y'])[2]
SELECT json_extract(j, '$.b[1].c'), json_array_length(j, '$.b'), json_valid('{'), json_keys(j) FROM (SELECT '{"a": 1, "b": [2, {"c": "d"}]}'::JSON AS j)
SELECT '12x'::INTEGER
SELECT TRY_CAST('12x' AS INTEGER), 1::DECIMAL(18, 3) / 7, 170141183460469231731687303715884105727::HUGEINT, 'NaN'::DOUBLE
SELECT 9223372036854775807 + 1
SELECT error('as asked')
SELECT nothing FROM nowhere
SELEC 1
PIVOT orders ON status USING count(*) GROUP BY priority ORDER BY priority
COPY items TO 'items.parquet' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20000)
SELECT count(*), sum(quantity), count(DISTINCT comment) FROM 'items.parquet' WHERE price BETWEEN 100 AND 500
COPY (SELECT * FROM orders WHERE id % 4 = 0) TO 'orders.csv' (HEADER)
SELECT count(*), min(placed), sum(customer) FROM read_csv('orders.csv')
COPY (SELECT id, name FROM customers LIMIT 500) TO 'customers.json'
SELECT count(*), max(length(name)) FROM read_json('customers.json')
BEGIN
UPDATE items SET price = price * 2 WHERE quantity > 25
DELETE FROM items WHERE part % 3 = 0
SELECT count(*), round(sum(price), 2) FROM items
ROLLBACK
UPDATE parts SET size = size + 1 WHERE type = 'steel'
DELETE FROM parts WHERE id BETWEEN 100 AND 199
INSERT INTO parts SELECT id + 10000, name, size, type FROM parts WHERE size > 40 ON CONFLICT DO NOTHING
CREATE INDEX by_customer ON orders (customer)
SELECT count(*) FROM orders WHERE customer = 77
CREATE VIEW totals AS SELECT customer, count(*) AS n, round(sum(price), 2) AS total FROM orders JOIN items ON orders.id = order_id GROUP BY customer
SELECT * FROM totals ORDER BY total DESC, customer LIMIT 10
SELECT count(*) FROM (SELECT DISTINCT part, quantity FROM items) a JOIN (SELECT part, max(quantity) AS quantity FROM items GROUP BY part) b USING (part, quantity)
SELECT a.id, b.id FROM parts a ASOF JOIN parts b ON a.size >= b.size AND a.type = b.type WHERE a.id < 6 AND b.id = a.id ORDER BY ALL
SELECT date_trunc('year', placed) AS year, count(*), histogram(status) FROM orders GROUP BY year ORDER BY year
SELECT quantile_cont(price, [0.1, 0.5, 0.9]), round(stddev(price), 6), round(corr(price, quantity), 8), bit_xor(part) FROM items
SELECT customer, placed FROM orders ORDER BY placed DESC, customer, id LIMIT 7
EXPLAIN SELECT * FROM totals WHERE customer = 3
CHECKPOINT
SELECT table_name, estimated_size, column_count FROM duckdb_tables() ORDER BY ALL
SELECT md5(string_agg(name || size, '' ORDER BY id)), sha256(count(*)::VARCHAR) FROM parts
