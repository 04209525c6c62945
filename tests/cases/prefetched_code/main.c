/* A program that asks for code ahead of calls (gcc's -mprefetchi): the functions move, and what asks for them with them. Where it asks for a place inside
   of a function, that one stays. */
#include "case.h"
#include <stdio.h>

/* `prefetchit0 place(%rip)` and `prefetchit1`, which assemblers do not all know. */
#define PREFETCH(level, place) __asm__ volatile(".byte 0x0f, 0x18, " level "\n\t.long " place " - . - 4")

static unsigned table[4] = {3, 5, 7, 11};

__attribute__((noinline, used)) static unsigned ahead(unsigned x) { return x * 3 + table[x & 3]; }

NOINLINE unsigned far_ahead(unsigned x) {
    if (x > 40) table[x & 3]++;
    return x ^ table[(x + 1) & 3];
}

NOINLINE unsigned partly(unsigned x) {
    unsigned y = x * 7;
    __asm__ volatile(".globl inside\ninside:" : "+r"(y));
    return y + 1;
}

NOINLINE unsigned work(unsigned x) {
    unsigned sum = 0;
    PREFETCH("0x3d", "ahead");
    for (unsigned i = 0; i < x; i++) {
        PREFETCH("0x35", "far_ahead");
        sum = mix(sum, ahead(i));
        sum = mix(sum, far_ahead(i));
        PREFETCH("0x3d", "inside");
    }
    return mix(sum, partly(x));
}

int main(void) {
    printf("%08x\n", work(opaque(60)));
    return 0;
}
