/* The large code model: 64-bit absolute addresses of functions and tables inside of instructions, calls only through
   registers. */
#include "case.h"
#include <stdio.h>

static unsigned table[8] = {1, 1, 2, 3, 5, 8, 13, 21};
NOINLINE unsigned pick(unsigned i, unsigned x) {
    switch (i) {
    case 0: return table[x % 8];
    case 1: return x * table[3];
    case 2: return x ^ 0x1000;
    case 3: return x + table[7];
    case 4: return x - 9;
    case 5: table[x % 8]++; return x;
    default: return 0;
    }
}
NOINLINE unsigned twice(unsigned (*f)(unsigned, unsigned), unsigned i, unsigned x) { return f(i, f(i, x)); }

int main(void) {
    unsigned sum = 28;
    for (unsigned i = 0; i < 140; i++) {
        sum = mix(sum, pick(opaque(i % 7), sum));
        sum = mix(sum, twice(pick, opaque(i % 6), sum));
    }
    printf("%08x\n", sum);
    return 0;
}
