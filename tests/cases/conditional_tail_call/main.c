/* Conditional jumps out of a function, short and long, taken and not; each must reach the start of the other one. */
#include "case.h"
#include <stdio.h>

unsigned if_zero(unsigned x);
unsigned if_below(unsigned x, unsigned y);
unsigned if_odd(unsigned x);
unsigned counted(unsigned x);
unsigned calls[4];

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 200; i++) {
        sum = mix(sum, if_zero(opaque(i % 3)));
        sum = mix(sum, if_below(opaque(i % 5), 3));
        sum = mix(sum, if_odd(sum));
        sum = mix(sum, counted(opaque(1 + i % 2)));
    }
    printf("%u %u %u %u %08x\n", calls[0], calls[1], calls[2], calls[3], sum);
    return 0;
}
