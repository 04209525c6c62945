/* Symbols that say little or too much: an empty cold fragment where the cold fragment of another function begins, an unwind entry
   in place of a size with nameless code behind it, a fragment without a size, and jumps through tables that an absolute address
   plus a constant names. And a size that is too large. */
#include "case.h"
#include <stdio.h>

unsigned whole(unsigned x), empty(unsigned x), framed(unsigned x), unsized(unsigned x);
unsigned swallowing(unsigned x);
unsigned holding(unsigned x), held(unsigned x);
unsigned reaching(unsigned x), reached(unsigned x), behind_reached(unsigned x);
extern unsigned (*const swallowed_functions[2])(unsigned);
unsigned claiming(unsigned x);
extern unsigned (*const claimed_functions[2])(unsigned);
#ifndef __PIE__
unsigned through_table(unsigned x), by_index(unsigned x);
#else
unsigned through_table(unsigned x) { return x + 0x20; }
unsigned by_index(unsigned x) { return x - 1; }
#endif

int main(void) {
    printf("%08x\n", whole(opaque(2)));
    printf("%08x\n", whole(opaque(9)));
    printf("%08x\n", empty(opaque(7)));
    printf("%08x\n", framed(opaque(1)));
    printf("%08x\n", framed(opaque(0)));
    printf("%08x\n", unsized(opaque(5)));
    printf("%08x\n", through_table(opaque(0)));
    printf("%08x\n", by_index(opaque(1)));
    printf("%08x\n", swallowing(opaque(1)));
    for (unsigned i = 0; i < 2; i++) {
        unsigned (*function)(unsigned) = swallowed_functions[opaque(i)];
        printf("%08x %d\n", function(opaque(i)), (int)((unsigned long)function & 15));
    }
    unsigned (*by_code)(unsigned) = opaque(1) ? held : holding;
    printf("%08x %08x %d\n", holding(opaque(1)), by_code(opaque(1)), (int)((unsigned long)by_code & 15));
    printf("%08x\n", reaching(opaque(1)) + reached(opaque(4)) + reached(opaque(5)) + behind_reached(opaque(6)));
    for (unsigned i = 0; i < 2; i++)
        printf("%08x\n", claiming(opaque(i)) + claimed_functions[opaque(i)](opaque(i)));
    return 0;
}
