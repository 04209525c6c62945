/* Tables of functions in the order of their addresses, searched by bisection: what the linker's order, or the assembler's,
   has sorted. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
struct row { function *run; uintptr_t number; };
extern function *const handlers[12], *const handlers_end[], *const unsearched[8];
extern const struct row named[8];

NOINLINE int index_of(uintptr_t address) {
    unsigned low = 0, high = 12;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if ((uintptr_t)handlers[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < 12 && (uintptr_t)handlers[low] == address ? (int)low : -1;
}

NOINLINE int name_of(uintptr_t address) {
    const struct row *low = named, *high = named + 8;
    while (high - low > 1) {
        const struct row *middle = low + (high - low) / 2;
        if ((uintptr_t)middle->run > address)
            high = middle;
        else
            low = middle;
    }
    return (int)low->number;
}

NOINLINE unsigned run_all(unsigned x) {
    for (unsigned i = 0; i < 8; i++)
        x = mix(x, unsearched[i](x));
    return x;
}

int main(void) {
    unsigned sum = 0;
    int wrong = 0;
    for (unsigned i = 0; i < 12; i++) {
        wrong += index_of((uintptr_t)handlers[opaque(i)]) != (int)i;
        sum = mix(sum, handlers[opaque(i)](i));
    }
    for (unsigned i = 0; i < 8; i++) {
        wrong += name_of((uintptr_t)named[opaque(i)].run) != (int)i;
        sum = mix(sum, named[opaque(i)].run(i));
    }
    printf("%d %08x %08x\n", wrong, sum, run_all(sum));
    return 0;
}
