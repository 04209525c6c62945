/* Functions that the compiler cloned or took apart: .constprop, .isra and .part, each also with a .cold of its own. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>

struct point { int x, y, z; };
static unsigned seen;

__attribute__((cold, noinline)) static void report(int code) { seen = mix(seen, (unsigned)code); }

/* Only one field is used: .isra passes it by value. */
static __attribute__((noinline)) int area(const struct point *p, int scale) {
    if (__builtin_expect(scale > 1000, 0)) {
        report(scale);
        return -1;
    }
    return p->x * p->x + scale;
}

/* Always called with one constant: .constprop. */
static __attribute__((noinline)) int weigh(int kind, int value) {
    int result = 0;
    for (int i = 0; i < 5; i++) {
        if (kind == 3)
            result += value ^ i;
        else
            result -= value << (i & 3);
        if (value == 4242)
            report(kind);
    }
    return result;
}

/* A short early way out before a long rest: .part. */
static int lookup(const int *table, int n, int key) {
    if (n == 0)
        return -1;
    int best = 0;
    for (int i = 0; i < n; i++) {
        seen = mix(seen, (unsigned)(table[i] - key));
        if (abs(table[i] - key) < abs(table[best] - key))
            best = i;
        if (table[i] == -key)
            report(i);
    }
    return best;
}

NOINLINE int user_a(const int *t, int n, int k) { return lookup(t, n, k) + weigh(3, k); }
NOINLINE int user_b(const int *t, int n, int k) { return lookup(t, n, k + 1) * 2; }
NOINLINE int user_c(const int *t, int n, int k) { return lookup(t, n, k - 1) - weigh(3, n); }

int main(void) {
    int table[40];
    unsigned sum = 17;
    for (int i = 0; i < 40; i++)
        table[i] = (i * 7919) % 101 - 50;
    for (int i = 0; i < 250; i++) {
        struct point p = {i, -i, 3};
        sum = mix(sum, (unsigned)area(&p, (int)opaque((unsigned)i * 5)));
        sum = mix(sum, (unsigned)user_a(table, (int)opaque((unsigned)i % 41), i - 100));
        sum = mix(sum, (unsigned)user_b(table, (int)opaque((unsigned)i % 41), i - 100));
        sum = mix(sum, (unsigned)user_c(table, (int)opaque((unsigned)i % 41), i - 100));
    }
    printf("%08x %08x\n", sum, seen);
    return 0;
}
