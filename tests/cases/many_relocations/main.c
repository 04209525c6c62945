/* Long tables of function pointers and strings: RELR bitmaps in one build, RELA entries in the other. */
#include "case.h"
#include <stdio.h>

typedef unsigned function(unsigned);
#define F(n) NOINLINE unsigned f##n(unsigned x) { return x % (n + 2) ? x + n * 7 : x ^ (n * 1001); }
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
struct entry { unsigned number; function *f; const char *name; function *again; };
#define E(n) {n, f##n, "f" #n, f##n},
struct entry entries[] = {E(0) E(1) E(2) E(3) E(4) E(5) E(6) E(7) E(8) E(9) E(10) E(11) E(12) E(13) E(14) E(15)};
function *dense[] = {f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f0, f1, f2, f3, f4, f5, f6, f7,
                     f8, f9, f10, f11, f12, f13, f14, f15, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13,
                     f14, f15, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f0, f1, f2, f3};
function *const constant[] = {f15, f14, f13};
struct { char pad; void *p __attribute__((aligned(2))); } __attribute__((packed)) *unused;

int main(void) {
    unsigned sum = 31, count = sizeof dense / sizeof dense[0];
    for (unsigned i = 0; i < 500; i++) {
        struct entry *e = &entries[opaque(i % 16)];
        sum = mix(sum, e->f(sum) + (unsigned char)e->name[1] + (e->f == e->again) + (e->f == dense[e->number]));
        sum = mix(sum, dense[opaque(i % count)](i) + constant[i % 3](sum));
    }
    printf("%08x\n", sum);
    return 0;
}
