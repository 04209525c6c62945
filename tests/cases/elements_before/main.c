/* Addresses inside a jump table that stand for elements of the array in front of it. */
#include "case.h"
#include <stdio.h>

unsigned sum_by_base(void), sum_by_index(void), choose(unsigned i);

int main(void) {
    printf("%u %u\n", sum_by_base(), sum_by_index());
    for (unsigned i = 0; i < 8; i++)
        printf("%u\n", choose(opaque(i)));
    return 0;
}
