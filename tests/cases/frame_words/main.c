/* Words of a stack frame that hold a jump's target for a while. */
#include "case.h"
#include <stdio.h>

unsigned each_round(unsigned value, unsigned rounds, unsigned way);
unsigned two_tables(unsigned value, unsigned rounds, unsigned way);
unsigned computed_one_way(unsigned value, unsigned rounds, unsigned way);

int main(void) {
    unsigned sum = 7;
    for (unsigned i = 0; i < 64; i++) {
        sum = mix(sum, each_round(opaque(sum), 1 + i % 5, i));
        sum = mix(sum, two_tables(opaque(sum), i % 3, i / 2));
        sum = mix(sum, computed_one_way(opaque(sum), 0, i));
    }
    printf("%08x\n", sum);
    return 0;
}
