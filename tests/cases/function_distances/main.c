/* Functions that are found by their distance from another one. */
#include "case.h"
#include <stdio.h>

unsigned by_jump(unsigned which, unsigned x), by_call(unsigned which, unsigned x), by_steps(unsigned which, unsigned x);

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 24; i++) {
        sum = mix(sum, by_jump(opaque(i) % 3, sum));
        sum = mix(sum, by_call(opaque(i + 1) % 3, sum));
        sum = mix(sum, by_steps(opaque(i) % 6, sum));
    }
    printf("%08x\n", sum);
    return 0;
}
