/* Control-flow protection: endbr64 at every function that may be called through a pointer, notrack jumps through
   tables, setjmp's landing place, and two PLTs. */
#include "case.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned operation(unsigned);
static jmp_buf back;

NOINLINE unsigned plus(unsigned x) { return x + 5; }
NOINLINE unsigned times(unsigned x) { return x * 5; }
NOINLINE unsigned leave(unsigned x) { longjmp(back, (int)(x % 7) + 1); }
operation *const operations[] = {plus, times, plus, leave};

NOINLINE unsigned choose(unsigned op, unsigned x) {
    switch (op) {
    case 0: return operations[x % 2](x);
    case 1: return x ^ 0x3c3c;
    case 2: return times(x) - 1;
    case 3: return operations[3](x);
    case 4: return x >> 9;
    case 5: return x + (x << 9);
    case 6: return x % 12345;
    default: return 0;
    }
}

int main(void) {
    volatile unsigned sum = 21;
    for (volatile unsigned i = 0; i < 400; i++) {
        int code = setjmp(back);
        if (code)
            sum = mix(sum, (unsigned)code);
        else
            sum = mix(sum, choose(opaque(i % 8), sum));
    }
    /* The start of a function must still be a landing place when the input had one there. */
    const unsigned char *start = (const unsigned char *)(void *)operations[opaque(0)];
    printf("%08x %02x%02x%02x%02x\n", sum, start[0], start[1], start[2], start[3]);
    return 0;
}
