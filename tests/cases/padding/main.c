/* Padding of all kinds: aligned functions, loops and labels, nops of many bytes inside of functions, room to patch before and
   behind the entry, and traps between functions. */
#include "case.h"
#include <stdio.h>

#if defined(__clang__) || defined(__GNUC__)
#define PATCHABLE __attribute__((patchable_function_entry(5, 2)))
#endif
PATCHABLE NOINLINE unsigned patchable(unsigned x) { return x * 33 + 5; }
NOINLINE unsigned loops(unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned j = i; j; j /= 2)
            sum = mix(sum, j);
        while (sum % 3 == 1)
            sum += 7;
    }
    return sum;
}
NOINLINE unsigned with_nops(unsigned x) {
    __asm__ volatile(".nops 31\n\t.byte 0xf3, 0x90" ::: "memory");
    if (x & 1)
        __asm__ volatile(".byte 0x66, 0x0f, 0x1f, 0x44, 0, 0\n\t.byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0" ::: "memory");
    return x + 2;
}
__asm__(".text\n\t.fill 13, 1, 0xcc\n\t.p2align 5, 0xcc");

int main(void) {
    unsigned (*volatile f)(unsigned) = patchable;
    unsigned sum = 30;
    for (unsigned i = 0; i < 150; i++)
        sum = mix(sum, f(sum) + loops(opaque(i % 40)) + with_nops(i));
    printf("%08x\n", sum);
    return 0;
}
