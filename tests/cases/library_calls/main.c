/* Calls of shared libraries: bound when they are first called or when the program starts, with arguments on the stack, of functions
   that return twice, that leave, that are chosen at the start, or that find thread-local memory. */
#include "case.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned long prefixed(const char *), wide(const char *), tail(const char *), by_word(const char *), in_loop(const char *);
unsigned long conditional_tail(const char *, unsigned long);

struct index {
    unsigned long module, offset;
};
void *__tls_get_addr(struct index *);
static __thread unsigned of_thread = 41;

static jmp_buf back;
NOINLINE static void leave(unsigned n) {
    if (n % 3 == 1)
        longjmp(back, (int)n);
}
NOINLINE static unsigned twice(unsigned n) {
    volatile unsigned before = n;
    int came = setjmp(back);
    if (came != 0)
        return before * 2 + (unsigned)came;
    before++;
    leave(n);
    return before;
}

NOINLINE static int many(char *into, unsigned n) {
    return sprintf(into, "%u %u %u %u %u %u %u %u %.2f", n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n / 4.0);
}
static int order(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return x < y ? -1 : x > y;
}

/* The same function, called and compared. */
static unsigned long (*volatile known)(const char *) = strlen;
NOINLINE static unsigned long own_tail(const char *text) { return strlen(text); }

int main(void) {
    unsigned sum = 9;
    char text[200];
    unsigned long (*volatile again)(const char *) = strlen;
    for (unsigned i = 0; i < 50; i++) {
        unsigned rows[5] = {i * 7 % 5, i * 3 % 11, i % 2, sum % 13, 4};
        sum = mix(sum, (unsigned)many(text, i));
        sum = mix(sum, (unsigned)(prefixed(text) + wide(text) * 3 + tail(text) * 5 + by_word(text) * 7));
        sum = mix(sum, (unsigned)(conditional_tail(text, i % 2) + in_loop(text) + own_tail(text + 1) + known(text)));
        qsort(rows, 5, sizeof *rows, order);
        sum = mix(sum, rows[0] + rows[2] * 3 + rows[4] * 5 + twice(i));
        memset(text, 'x', 10 + i % 5);
        sum = mix(sum, (unsigned)strlen(text) + (unsigned)text[12]);
    }
    struct index first = {1, 0};
    of_thread++;
    printf("%d %u %08x\n", known == again, *(unsigned *)__tls_get_addr(&first), sum);
    if (sum == 1)
        abort();
    exit((int)(of_thread % 5));
}
