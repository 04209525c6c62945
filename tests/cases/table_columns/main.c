/* Tables of functions in the order of their addresses whose rows hold more than one word: a long name, a second function, the end of the first. Each is
   searched by the function that names it, two by comparing and one by the sign of a difference. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef unsigned function(unsigned);
#define EACH(row, name) row(name, 0) row(name, 1) row(name, 2) row(name, 3) row(name, 4) row(name, 5) row(name, 6) row(name, 7) row(name, 8) row(name, 9) row(name, 10) row(name, 11)
#define DECLARED(name, number) function name##number;
EACH(DECLARED, wide) EACH(DECLARED, paired) EACH(DECLARED, bounded) EACH(DECLARED, subtracted)
#define ROWS 12

struct wide { function *at; char name[64]; };
struct paired { function *at, *other; unsigned number; };
struct bounded { function *at, *end; const char *name; };

#define WIDE(name, number) {name##number, #name #number},
static const struct wide wide_rows[ROWS] = {EACH(WIDE, wide)};
#define PAIRED(name, number) {name##number, number & 1 ? wide0 : wide7, number},
static struct paired paired_rows[ROWS] = {EACH(PAIRED, paired)};
static const struct bounded bounded_rows[ROWS + 1] = {
    {bounded0, bounded1, "a"}, {bounded1, bounded2, "b"}, {bounded2, bounded3, "c"}, {bounded3, bounded4, "d"},
    {bounded4, bounded5, "e"}, {bounded5, bounded6, "f"}, {bounded6, bounded7, "g"}, {bounded7, bounded8, "h"},
    {bounded8, bounded9, "i"}, {bounded9, bounded10, "j"}, {bounded10, bounded11, "k"}, {bounded11, subtracted0, "l"}};
#define SUBTRACTED(name, number) {subtracted##number, #number},
static const struct { function *at; const char *name; } subtracted_rows[ROWS] = {EACH(SUBTRACTED, subtracted)};

NOINLINE const char *find_wide(uintptr_t at) {
    unsigned low = 0, high = ROWS;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (at >= (uintptr_t)wide_rows[middle].at) low = middle; else high = middle;
    }
    return wide_rows[low].name;
}

NOINLINE unsigned find_paired(uintptr_t at) {
    unsigned low = 0, high = ROWS;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (at < (uintptr_t)paired_rows[middle].at) high = middle; else low = middle;
    }
    return paired_rows[low].number + paired_rows[low].other(low);
}

NOINLINE const char *find_bounded(uintptr_t at) {
    for (const struct bounded *row = bounded_rows; row->at; row++)
        if (at >= (uintptr_t)row->at && at < (uintptr_t)row->end) return row->name;
    return "none";
}

NOINLINE const char *find_subtracted(uintptr_t at) {
    unsigned low = 0, high = ROWS;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if ((intptr_t)(at - (uintptr_t)subtracted_rows[middle].at) >= 0) low = middle; else high = middle;
    }
    return subtracted_rows[low].name;
}

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < ROWS; i++) {
        sum = mix(sum, wide_rows[i].at(i) + paired_rows[i].at(i) + bounded_rows[i].at(i) + subtracted_rows[i].at(i));
        sum = mix(sum, find_paired((uintptr_t)paired_rows[i].at));
        printf("%s %s %s\n", find_wide((uintptr_t)wide_rows[i].at), find_bounded((uintptr_t)bounded_rows[i].at),
               find_subtracted((uintptr_t)subtracted_rows[i].at));
    }
    printf("%08x\n", sum);
    return 0;
}
