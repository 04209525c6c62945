/* A table of label differences (GNU C's way to have computed gotos without dynamic relocations): plain numbers
   in .rodata that no relocation tells. Moving a block of this function alone breaks the program. */
#include "case.h"
#include <stdio.h>

NOINLINE unsigned run(const unsigned char *code, unsigned x) {
    static const int offsets[] = {&&add - &&add, &&shift - &&add, &&flip - &&add, &&twice - &&add, &&stop - &&add};
#define NEXT goto *(&&add + offsets[*code++])
    NEXT;
add:
    x += 13;
    NEXT;
shift:
    x = x << 5 | x >> 27;
    NEXT;
flip:
    x ^= 0x123456;
    NEXT;
twice:
    x *= 3;
    NEXT;
stop:
    return x;
}

int main(void) {
    static const unsigned char code[] = {0, 1, 2, 3, 0, 3, 1, 2, 2, 1, 0, 4};
    unsigned sum = 2;
    for (unsigned i = 0; i < 500; i++)
        sum = mix(sum, run(code + opaque(i % 12), sum));
    printf("%08x\n", sum);
    return 0;
}
