/* Calls places that a table tells by their distance from the global offset table. */
#include "case.h"
#include <stdio.h>

unsigned by_offset(unsigned x, unsigned which), steps(unsigned x);

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 30; i++) {
        sum = mix(sum, by_offset(sum, opaque(i) % 3));
        sum = mix(sum, steps(sum));
    }
    printf("%08x\n", sum);
    return 0;
}
