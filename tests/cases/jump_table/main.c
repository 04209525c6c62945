/* A dense switch over ten operations with different work: every compiler makes a jump table of it,
   relative in position-independent code and absolute otherwise. */
#include "case.h"
#include <stdio.h>

NOINLINE unsigned step(unsigned op, unsigned x) {
    switch (op) {
    case 0: return x + 17;
    case 1: return x * 3;
    case 2: return x ^ (x >> 7);
    case 3: return x - (x << 3);
    case 4: return (x << 5) | (x >> 27);
    case 5: return ~x;
    case 6: return x % 1000003u;
    case 7: return x & 0x5a5a5a5au;
    case 8: return x | 0x10101u;
    case 9: return x / 7u;
    default: return x - 1;
    }
}

int main(void) {
    unsigned sum = 1, each[12] = {0};
    for (unsigned i = 0; i < 1200; i++) {
        unsigned op = opaque(i % 12);
        sum = mix(sum, step(op, sum));
        each[op] = mix(each[op], sum);
    }
    for (unsigned i = 0; i < 12; i++)
        printf("%u %08x\n", i, each[i]);
    return 0;
}
