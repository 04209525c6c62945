/* gcc moves what it holds for unlikely into `name.cold`, a fragment far from its parent that jumps back into it; also from
   the entries of a jump table and out of loops. clang makes no fragments of the same source. */
#include "case.h"
#include <stdio.h>

static unsigned troubles;
__attribute__((cold)) NOINLINE void trouble(unsigned what) { troubles = mix(troubles, what); }

NOINLINE unsigned careful(unsigned x, unsigned y) {
    unsigned result = x;
    if (__builtin_expect(x == 13, 0)) {
        trouble(1);
        trouble(x);
        result += 1000;
    }
    result = result * 3 + y;
    if (__builtin_expect(y > 90, 0)) {
        trouble(y);
        result -= y;
        if (x & 1)
            trouble(2);
    }
    return result ^ 0x77;
}

NOINLINE unsigned looping(const unsigned *values, unsigned count) {
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (__builtin_expect(values[i] % 29 == 3, 0)) {
            trouble(i);
            sum += 7;
            continue;
        }
        sum = mix(sum, values[i]);
    }
    return sum;
}

NOINLINE unsigned switching(unsigned op, unsigned x) {
    switch (op) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: trouble(22); trouble(x); return x - 1;
    case 3: return x ^ 0xf0f0;
    case 4: trouble(op); x += 44; break;
    case 5: return x >> 3;
    case 6: return x << 3;
    default: trouble(99); x = 0; break;
    }
    return x | 1;
}

int main(void) {
    unsigned values[64], sum = 1;
    for (unsigned i = 0; i < 64; i++)
        values[i] = i * 37 + 5;
    for (unsigned i = 0; i < 300; i++) {
        sum = mix(sum, careful(opaque(i % 20), opaque(i % 100)));
        sum = mix(sum, looping(values, opaque(i % 64)));
        sum = mix(sum, switching(opaque(i % 9), sum));
    }
    printf("%08x %08x\n", sum, troubles);
    return 0;
}
