/* A fixed set of queries on an in-memory SQLite database: the workload for the relink example.
   Prints a checksum of all results. The argument is the number of rounds. */
#include "sqlite3.h"
#include <stdio.h>
#include <stdlib.h>
static void run(sqlite3 *db, const char *sql, unsigned *sum) {
  sqlite3_stmt *s; const char *tail = sql;
  while (*tail) {
    if (sqlite3_prepare_v2(db, tail, -1, &s, &tail) != SQLITE_OK) { fprintf(stderr, "%s\n", sqlite3_errmsg(db)); exit(1); }
    if (!s) break;
    while (sqlite3_step(s) == SQLITE_ROW)
      for (int c = 0; c < sqlite3_column_count(s); c++) *sum = *sum * 31u + (unsigned)sqlite3_column_int(s, c);
    sqlite3_finalize(s);
  }
}
int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20;
  unsigned sum = 0; sqlite3 *db; char sql[256];
  sqlite3_open(":memory:", &db);
  run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, v TEXT); CREATE INDEX i ON t(k); BEGIN;"
          "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<3000)"
          "INSERT INTO t SELECT x, (x*7919)%1000, 'row number '||x FROM n; COMMIT;", &sum);
  for (int r = 0; r < rounds; r++) {
    for (int q = 0; q < 60; q++) {
      snprintf(sql, sizeof sql, "SELECT id, length(v) FROM t WHERE k=%d ORDER BY v DESC LIMIT 5;", (r * 61 + q * 17) % 1000);
      run(db, sql, &sum);
      snprintf(sql, sizeof sql, "UPDATE t SET v='changed '||v WHERE id=%d AND length(v)<60;", (r * 97 + q * 31) % 3000 + 1);
      run(db, sql, &sum);
    }
    run(db, "SELECT k%10, count(*), sum(length(v)), max(upper(substr(v,1,4)) LIKE 'ROW%') FROM t GROUP BY 1;", &sum);
  }
  printf("%u\n", sum);
  return 0;
}
