/* A runtime that knows its callers by their return addresses, from a table that the compiler made. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

struct row {
    uintptr_t address, value;
};
extern const struct row table[2];
unsigned looked_up(unsigned x);

NOINLINE unsigned collect(void) {
    /* Not the first instruction: a function that starts by reading its return address is known by that. */
    __asm__ volatile("nop" ::: "memory");
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    for (unsigned i = 0; i < 2; i++)
        if (table[i].address == caller)
            return table[i].value;
    return 7;
}

int main(void) {
    printf("%u %u\n", looked_up(opaque(3)), looked_up(opaque(4)));
    return 0;
}
