/* A function that runs off its end into the next one, on purpose. */
#include "case.h"
#include <stdio.h>

unsigned add_header(unsigned x), add_body(unsigned x), add_tail(unsigned x), half_covered(unsigned x);

int main(void) {
    unsigned sum = 8;
    for (unsigned i = 0; i < 100; i++) {
        sum = mix(sum, add_header(sum));
        sum = mix(sum, add_body(opaque(i)));
        sum = mix(sum, add_tail(sum));
    }
    printf("%08x %08x %08x %08x\n", add_header(opaque(1)), add_body(opaque(1)), add_tail(opaque(1)), sum);
    for (unsigned x = 3; x < 9; x += x == 3 ? 1 : 2)
        printf("%u\n", half_covered(opaque(x)));
    return 0;
}
