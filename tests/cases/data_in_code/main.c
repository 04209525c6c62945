/* Tables and constants among instructions: inside of a function that reads them, between two functions, and a jump
   table of offsets that stands in .text. */
#include "case.h"
#include <stdio.h>

unsigned table_inside(unsigned x), constant_behind(unsigned x), reads_neighbour(unsigned x), jump_inside(unsigned op, unsigned x);
extern const unsigned loose_table[4];

int main(void) {
    unsigned sum = 10;
    for (unsigned i = 0; i < 256; i++) {
        sum = mix(sum, table_inside(opaque(i)));
        sum = mix(sum, constant_behind(sum));
        sum = mix(sum, reads_neighbour(opaque(i)));
        sum = mix(sum, jump_inside(opaque(i % 5), sum));
        sum = mix(sum, loose_table[i % 4]);
    }
    printf("%08x\n", sum);
    return 0;
}
