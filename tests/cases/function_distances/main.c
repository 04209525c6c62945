/* Functions that are found by their distance from another one. */
#include "case.h"
#include <stdio.h>

unsigned by_jump(unsigned which, unsigned x), by_call(unsigned which, unsigned x), by_steps(unsigned which, unsigned x);

unsigned lower(unsigned x), upper(unsigned x);

/* Whether a function is `lower`: it lies behind its start, by less than all of it takes. A call reads the number from elsewhere. */
NOINLINE int is_lower(unsigned long function) {
    return function - (unsigned long)lower < (unsigned long)upper - (unsigned long)lower;
}

static unsigned (*const volatile pair[])(unsigned) = {lower, upper};

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 24; i++) {
        sum = mix(sum, by_jump(opaque(i) % 3, sum));
        sum = mix(sum, by_call(opaque(i + 1) % 3, sum));
        sum = mix(sum, by_steps(opaque(i) % 6, sum));
        sum = mix(sum, pair[i & 1](sum) + (unsigned)is_lower((unsigned long)pair[i & 1]));
    }
    printf("%08x\n", sum);
    return 0;
}
