/* Switches whose holes cannot be reached: clang leads a table's entries for them to an empty block, which may come last in its
   function. These entries name where the function ends: padding, or the next function's entry. */
#include "case.h"
#include <stdio.h>

NOINLINE unsigned choose(unsigned which, unsigned x) {
    switch (which) {
    case 0: return x * 3;
    case 1: return mix(x, 7);
    case 2: return x ^ (x >> 3);
    case 3: return mix(x, x);
    case 6: return x - 11;
    case 7: return mix(7, x) + 1;
    case 9: return x / 3;
    case 12: return x * x;
    case 13: return mix(x, 13) >> 2;
    default: __builtin_unreachable();
    }
}

/* The first entries are holes, too. */
NOINLINE unsigned late(unsigned which, unsigned x) {
    switch (which) {
    case 0x10: return x * 5;
    case 0x3: return mix(x, 17);
    case 0x4: return x ^ (x >> 7);
    case 0x5: return mix(x, x + 1);
    case 0x8: return x - 13;
    case 0x9: return mix(9, x) + 1;
    case 0xb: return x / 5;
    case 0xe: return x * x + 1;
    default: __builtin_unreachable();
    }
}

/* Two tables in one function, and a loop around them. */
NOINLINE unsigned both(const unsigned char *codes, unsigned n) {
    unsigned a = 1, b = 2;
    for (unsigned i = 0; i < n; i++) {
        switch (codes[i] >> 4) {
        case 0: a = mix(a, b); break;
        case 1: a += b; break;
        case 2: a ^= b >> 2; break;
        case 4: a = mix(b, 4); break;
        case 5: a -= b * 3; break;
        case 7: a = mix(a, 1); break;
        default: __builtin_unreachable();
        }
        switch (codes[i] & 15) {
        case 1: b = mix(b, a); break;
        case 2: b += a; break;
        case 3: b ^= a >> 5; break;
        case 6: b = mix(a, 6); break;
        case 8: b -= a * 3; break;
        case 9: return mix(a, b);
        default: __builtin_unreachable();
        }
    }
    return a + b;
}

NOINLINE unsigned follows(unsigned x) { return mix(x, 99); }

int main(void) {
    static const unsigned char which[] = {0, 1, 2, 3, 6, 7, 9, 12, 13}, others[] = {16, 3, 4, 5, 8, 9, 11, 14};
    static const unsigned char codes[] = {0x01, 0x12, 0x23, 0x46, 0x58, 0x71, 0x02, 0x13, 0x28, 0x41, 0x52, 0x79};
    unsigned sum = 1;
    for (unsigned i = 0; i < 1000; i++) {
        sum = mix(sum, choose(which[i % sizeof which], opaque(i)));
        sum = mix(sum, late(others[i % sizeof others], opaque(i)));
        sum = mix(sum, both(codes + i % 5, sizeof codes - 5));
        sum = follows(sum);
    }
    printf("%08x\n", sum);
    return 0;
}
