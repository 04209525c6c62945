/* Words without a jump that tells about them, named by a symbol of data with an absolute address, behind another table. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
extern const char base[];
extern const int32_t near[];
unsigned before(unsigned), by_table(unsigned), first(unsigned), second(unsigned);

NOINLINE unsigned by_words(unsigned i, unsigned x) {
    const int32_t *word = &near[i % 3];
    return ((function *)((uintptr_t)base + (uintptr_t)(intptr_t)*word))(x);
}

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 60; i++)
        sum = mix(sum, by_words(i, sum) + by_table(i) + before(sum) + first(i) * second(i));
    printf("%08x\n", sum);
    return 0;
}
