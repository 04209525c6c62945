/* Instructions whose branch has only one byte of reach: jrcxz, jecxz, loop, loope, loopne; in loops and out of them. */
#include "case.h"
#include <stdio.h>

unsigned sum_down(unsigned n), zero_or(unsigned n), low_zero(unsigned long n);
unsigned length_equal(const char *a, const char *b, unsigned n), find(const char *a, int c, unsigned n);

int main(void) {
    unsigned sum = 14;
    for (unsigned i = 0; i < 60; i++) {
        sum = mix(sum, sum_down(opaque(1 + i % 9)));
        sum = mix(sum, zero_or(opaque(i % 3)));
        sum = mix(sum, low_zero((unsigned long)opaque(i % 2) << 32 | opaque(i % 4)));
        sum = mix(sum, length_equal("layout of code", "layout on disk", opaque(1 + i % 14)));
        sum = mix(sum, find("layout of code", (int)opaque('a' + i % 26), 14));
    }
    printf("%u %u %u %08x\n", sum_down(opaque(10)), length_equal("abcdef", "abcxef", 6), find("abcdef", 'd', 6), sum);
    return 0;
}
