/* A slowdown of known size inside SQLite: linked with -Wl,--wrap=sqlite3_prepare_v2, it makes that function now and then
 * prepare and run one of the latest queries once more and throw the rows away. What is added is a share of the
 * program's own work and so costs time like the rest of it, which an added loop of arithmetic would not.
 *
 * PLANT_SHARE     queries repeated for each one asked; compare.sh finds the value by counting instructions
 * PLANT_CLOCK     if defined, the CPU time spent in repeats, over that of all the rest, goes to the standard error */
#include <string.h>
#include <stdio.h>
#include <time.h>

#include "sqlite3.h"

int __real_sqlite3_prepare_v2(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);

/* Any of the last two rounds' queries: the same mix. They take few pages, so that hardly anything but the repeats is added. */
enum { REMEMBERED = 64, LONGEST = 384 };

static char queries[REMEMBERED][LONGEST];
static unsigned count;
static double owed;

/* Numerical Recipes' generator: the same choice everywhere. */
static unsigned choose(void) {
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % REMEMBERED;
}

#ifdef PLANT_CLOCK
static double spent, began;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

__attribute__((constructor)) static void begin(void) { began = now(); }
__attribute__((destructor)) static void end(void) { fprintf(stderr, "%.6f\n", spent / (now() - began - spent)); }
#endif

static void repeat(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement;
    if (__real_sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) return;
    while (sqlite3_step(statement) == SQLITE_ROW)
        for (int column = 0; column < sqlite3_column_count(statement); column++) sqlite3_column_text(statement, column);
    sqlite3_finalize(statement);
}

int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int size, sqlite3_stmt **statement, const char **tail) {
    int status = __real_sqlite3_prepare_v2(db, sql, size, statement, tail);
    size_t length = strlen(sql) + 1;
    if (status != SQLITE_OK || length > LONGEST || (strncmp(sql, "SELECT", 6) != 0 && strncmp(sql, "WITH", 4) != 0)) return status;
    for (owed += PLANT_SHARE; owed >= 1; owed -= 1) {
        const char *earlier = queries[choose()];
        if (*earlier == '\0') continue;
#ifdef PLANT_CLOCK
        double start = now();
        repeat(db, earlier);
        spent += now() - start;
#else
        repeat(db, earlier);
#endif
    }
    memcpy(queries[count++ % REMEMBERED], sql, length);
    return status;
}
