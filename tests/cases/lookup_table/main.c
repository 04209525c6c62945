/* Switches that compilers turn into tables of values, strings and string offsets, not of code: read with the same
   instructions as a jump table, and beside one in .rodata. */
#include "case.h"
#include <stdio.h>
#include <string.h>

NOINLINE const char *name_of(unsigned op) {
    switch (op) {
    case 0: return "add";
    case 1: return "subtract";
    case 2: return "multiply";
    case 3: return "divide";
    case 4: return "remainder";
    case 5: return "and";
    case 6: return "or";
    default: return "unknown";
    }
}

NOINLINE int value_of(unsigned op) {
    switch (op) {
    case 0: return 44;
    case 1: return -13;
    case 2: return 100000;
    case 3: return 7;
    case 4: return -900000;
    case 5: return 3;
    default: return -1;
    }
}

NOINLINE unsigned act(unsigned op, unsigned x) {
    switch (op) {
    case 0: return x + strlen(name_of(x % 8));
    case 1: return x - (unsigned)value_of(x % 7);
    case 2: return x * 9;
    case 3: return x / 9;
    case 4: return x % 1000;
    case 5: return x & 0xffff;
    default: return x;
    }
}

int main(void) {
    unsigned sum = 5;
    for (unsigned i = 0; i < 70; i++) {
        const char *name = name_of(opaque(i % 8));
        for (const char *c = name; *c; c++)
            sum = mix(sum, (unsigned char)*c);
        sum = mix(sum, (unsigned)value_of(opaque(i % 8)));
        sum = mix(sum, act(opaque(i % 7), sum));
    }
    printf("%s %s %d %08x\n", name_of(opaque(3)), name_of(opaque(9)), value_of(opaque(4)), sum);
    return 0;
}
