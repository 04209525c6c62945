/* Code in a section that the program writes to: the bytes that it changes must be those that run. */
#include "case.h"
#include <stdio.h>

extern unsigned char number[];
unsigned patched(void);

__asm__(".section .patched, \"awx\", @progbits\n"
        ".globl patched\n"
        ".type patched, @function\n"
        "patched: .byte 0xb8\n"
        ".globl number\n"
        "number: .long 5\n"
        "ret\n"
        ".size patched, .-patched\n"
        ".text\n");

NOINLINE unsigned plain(unsigned x) { return mix(x, opaque(x) / 3); }

int main(void) {
    unsigned sum = plain(patched());
    for (unsigned i = 0; i < 40; i++) {
        number[0] = (unsigned char)i;
        sum = plain(mix(sum, patched()));
    }
    printf("%08x\n", sum);
    return 0;
}
