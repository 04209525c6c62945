/* Functions that ask for an alignment, whose addresses carry tags in the bits that it leaves free. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
#define ALIGNED(n) __attribute__((aligned(n))) NOINLINE
/* More than loaders promise, so its tags leave a bit free. The first one, as the code of a file starts where its strictest alignment asks. */
ALIGNED(8192) unsigned a8192(unsigned x) { return opaque(x) * 19 + 10; }
ALIGNED(8) unsigned a8(unsigned x) { return opaque(x) * 3 + 1; }
ALIGNED(16) unsigned a16(unsigned x) { return opaque(x) * 300 + 70000; }
NOINLINE unsigned plain(unsigned x) { return opaque(x) ^ 0x5a; }
ALIGNED(32) unsigned a32(unsigned x) { return opaque(x) * 5 + 300; }
ALIGNED(64) unsigned a64(unsigned x) { return opaque(x) * 7 + 2; }
ALIGNED(32) static unsigned b32(unsigned x) { return opaque(x) * 70 + 5; }
ALIGNED(64) static unsigned b64(unsigned x) { return opaque(x) * 9000 + 6; }
ALIGNED(256) static unsigned b256(unsigned x) { return opaque(x) * 11 + 7; }
ALIGNED(4096) unsigned a4096(unsigned x) { return opaque(x) * 130 + 8; }
ALIGNED(512) static unsigned b512(unsigned x) { return opaque(x) * 1700 + 9; }

struct entry { function *run; unsigned alignment; };
/* Not eight in ascending order, which might be searched. */
static const struct entry table[] = {{a16, 16}, {a8192, 4096}, {a32, 32}, {b32, 32}, {b64, 64},
                                     {b256, 256}, {a4096, 4096}, {b512, 512}, {a8, 8}};

NOINLINE uintptr_t tagged(function *f, unsigned tag) { return (uintptr_t)f | tag; }
NOINLINE unsigned call(uintptr_t word, unsigned alignment, unsigned x) {
    uintptr_t mask = (uintptr_t)alignment - 1;
    return ((function *)(word & ~mask))(x) + (unsigned)(word & mask);
}

int main(void) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 9; i++)
        for (unsigned tag = 0; tag < table[i].alignment; tag += 3 + tag / 16)
            sum = mix(sum, call(tagged(table[i].run, tag), table[i].alignment, i));
    function *volatile taken[] = {a64, plain};
    sum = mix(sum, call(tagged(taken[0], 63), 64, sum));
    printf("%08x %u\n", sum, taken[1](1));
    return 0;
}
