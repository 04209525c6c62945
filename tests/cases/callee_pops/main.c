/* Calls of functions that call what takes its own arguments off the stack. */
#include "case.h"
#include <stdio.h>

long calls(long x), calls_on(long x), calls_any(long x), jumps(long x);

#if defined(__clang__)
#define POPS __attribute__((swiftasynccall))
#else
#define POPS
#endif
POPS NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h) {
    long s = a * 3 + b * 5 + c * 7 + d * 11 + e * 13 + f * 17 + g * 19 + h * 23;
    for (int i = 0; i < 3; i++) s ^= s >> 3;
    return s;
}

volatile long seen;
NOINLINE long compiled(long a, long b) {
    long r = many(a, b, a ^ b, a + b, a - b, a | b, a & b, a * b);
    if (r & 1) {
        seen = r;
        if (r & 4) return r * 3;
        return r - 7;
    }
    return r;
}

NOINLINE unsigned sum(int count) {
    unsigned all = 0;
    for (int x = 0; x < count; x++) {
        all = mix(all, (unsigned)(calls(x) + calls_on(x) * 3 + calls_any(x) * 5 + jumps(x) * 7));
        all = mix(all, (unsigned)compiled(x, all & 255));
    }
    return all;
}

int main(void) {
    printf("%08x\n", sum(24));
    return 0;
}
