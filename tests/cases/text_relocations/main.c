/* A position-independent program whose code holds absolute addresses: the dynamic linker writes them where the code
   was linked, so the code can't stand elsewhere. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>

static unsigned twice(unsigned x) { return 2 * x; }

/* Filled by a relocation against a symbol of another object. */
NOINLINE int foreign(int x) {
    int (*function)(int);
    __asm__("movabs $abs, %0" : "=r"(function));
    return function(x);
}

/* Filled by a relocation against the program itself. */
NOINLINE unsigned own(unsigned x) {
    unsigned (*function)(unsigned);
    __asm__("movabs %1, %0" : "=r"(function) : "i"(twice));
    return function(x);
}

NOINLINE unsigned plain(unsigned x) { return mix(x, opaque(x) / 3); }

int main(void) {
    unsigned sum = 1;
    for (int i = 0; i < 64; i++) sum = plain(mix(sum, (unsigned)foreign(20 - i) + own(sum)));
    printf("%08x\n", sum);
    return 0;
}
