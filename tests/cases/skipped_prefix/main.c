/* Jumps over a prefix into the middle of an instruction, as glibc does to skip `lock` while there is one thread, with an operand
   relative to the instruction; and one byte string that is read as two sequences of instructions. */
#include "case.h"
#include <stdio.h>

unsigned exchange(unsigned old, unsigned new, unsigned threads), either_way(unsigned x, unsigned way);
unsigned shared = 34, unlocked;

int main(void) {
    unsigned sum = 34;
    for (unsigned i = 0; i < 200; i++) {
        unsigned before = shared;
        sum = mix(sum, exchange(opaque(i % 3 ? before : 7), sum, opaque(i % 2)));
        sum = mix(sum, shared + either_way(sum, opaque(i % 2)));
    }
    printf("%08x %08x\n", shared, sum);
    return 0;
}
