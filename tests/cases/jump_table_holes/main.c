/* Tables with holes that lead to the default, one that starts at a negative number, one whose index needs no bounds
   check because it was masked, and one whose default can't happen, so that nothing in the code tells its length. */
#include "case.h"
#include <stdio.h>

static unsigned hits[8];

NOINLINE unsigned holes(int op, unsigned x) {
    switch (op) {
    case 1: hits[0]++; return x * 7;
    case 3: hits[1]++; return x ^ 0x77;
    case 4: hits[2] += x; return x + 4;
    case 9: hits[3]++; return x >> 2;
    case 10: hits[4] ^= x; return x - 9;
    case 14: hits[5]++; return x * x;
    case 15: return x % 77;
    default: hits[6] += (unsigned)op; return x + 1;
    }
}

NOINLINE unsigned negative(int op, unsigned x) {
    switch (op) {
    case -5: return x + 5;
    case -4: hits[0]++; return x ^ 4;
    case -3: return x * 3;
    case -2: hits[1] += 2; return x - 2;
    case -1: return x / 3;
    case 0: hits[2]++; return ~x;
    case 1: return x << 1;
    default: return x;
    }
}

NOINLINE unsigned masked(unsigned op, unsigned x) {
    switch (op & 7) {
    case 0: hits[0] += x; return x + 11;
    case 1: return x * 13;
    case 2: hits[1]++; return x ^ 17;
    case 3: return x - 19;
    case 4: hits[2] ^= 5; return x / 5;
    case 5: return x << 3;
    case 6: hits[3]++; return x >> 3;
    default: return x | 1;
    }
}

NOINLINE unsigned unbounded(unsigned op, unsigned x) {
    switch (op) {
    case 0: hits[4]++; return x + 101;
    case 1: return x * 103;
    case 2: hits[5] += x; return x ^ 107;
    case 3: return x - 109;
    case 4: hits[6]++; return x / 11;
    case 5: return x << 5;
    case 6: hits[7]++; return x >> 5;
    default: __builtin_unreachable();
    }
}

int main(void) {
    unsigned sum = 3;
    for (int i = 0; i < 1000; i++) {
        sum = mix(sum, holes((int)opaque((unsigned)i % 18), sum));
        sum = mix(sum, negative((int)opaque((unsigned)i % 9) - 6, sum));
        sum = mix(sum, masked(opaque((unsigned)i), sum));
        sum = mix(sum, unbounded(opaque((unsigned)i % 7), sum));
    }
    for (int i = 0; i < 8; i++)
        printf("%u ", hits[i]);
    printf("%08x\n", sum);
    return 0;
}
