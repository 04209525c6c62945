/* Returns and calls that lead to where nothing but a number says. */
#include "case.h"
#include <stdio.h>

unsigned by_return(unsigned which, unsigned x), by_call(unsigned which, unsigned x);

NOINLINE unsigned ordinary(unsigned x) { return x * 3 + 1; }

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 24; i++) {
        sum = mix(sum, by_return(opaque(i) % 3, sum));
        sum = mix(sum, by_call(opaque(i) % 2, sum));
        sum = mix(sum, ordinary(sum));
    }
    printf("%08x\n", sum);
    return 0;
}
