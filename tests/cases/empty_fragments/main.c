/* Fragments without a byte: what leads to one never happens, and the address is another function's. */
#include "case.h"
#include <stdio.h>

unsigned chosen(unsigned op, unsigned x), neighbour(unsigned x), staying(unsigned op, unsigned x), behind(unsigned x);

static const unsigned possible[] = {1, 2, 4, 5, 6, 7};

int main(void) {
    unsigned sum = 9;
    for (unsigned i = 0; i < 600; i++) {
        sum = mix(sum, chosen(opaque(possible[i % 6]), sum));
        sum = mix(sum, neighbour(opaque(i)));
        sum = mix(sum, staying(opaque(i % 3 + 1), sum));
        sum = mix(sum, behind(opaque(i)));
    }
    printf("%08x\n", sum);
    return 0;
}
