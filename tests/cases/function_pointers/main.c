/* Function pointers everywhere: constant and writable data, structures, compared for identity and order, sent through
   qsort and bsearch, taken of library functions, kept in a sorted table of addresses. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int compare(const void *, const void *);
struct handler { const char *name; unsigned (*run)(unsigned); compare *order; };

NOINLINE int up(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
NOINLINE int down(const void *a, const void *b) { return *(const int *)b - *(const int *)a; }
NOINLINE unsigned red(unsigned x) { return x + 1; }
NOINLINE unsigned green(unsigned x) { return x * 3; }
NOINLINE unsigned blue(unsigned x) { return x ^ 0xb10e; }

static const struct handler fixed[] = {{"red", red, up}, {"green", green, down}, {"blue", blue, up}};
static struct handler writable[] = {{"blue", blue, down}, {"red", red, up}};
unsigned (*current)(unsigned) = green;
static size_t (*const library)(const char *) = strlen;

NOINLINE int which(unsigned (*f)(unsigned)) { return f == red ? 0 : f == green ? 1 : f == blue ? 2 : -1; }

static int by_value(const void *a, const void *b) {
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

int main(void) {
    int values[50];
    uintptr_t sorted[3] = {(uintptr_t)red, (uintptr_t)green, (uintptr_t)blue};
    unsigned sum = 18;
    qsort(sorted, 3, sizeof sorted[0], by_value);
    for (unsigned i = 0; i < 120; i++) {
        const struct handler *h = i % 5 < 3 ? &fixed[i % 5] : &writable[i % 5 - 3];
        uintptr_t key = (uintptr_t)h->run;
        for (unsigned j = 0; j < 50; j++)
            values[j] = (int)(mix(sum, j) % 1000);
        qsort(values, 50, sizeof values[0], h->order);
        sum = mix(sum, (unsigned)values[i % 50] + (unsigned)which(h->run) + (unsigned)which(current));
        sum = mix(sum, current(h->run(sum)) + (unsigned)library(h->name));
        sum += bsearch(&key, sorted, 3, sizeof key, by_value) != NULL;
        current = h->run;
        writable[i % 2].run = fixed[(i + 1) % 3].run;
    }
    printf("%d %d %d %08x\n", which(current), library == strlen, which(red), sum);
    return 0;
}
