/* Instructions with a relative target that are no ordinary branch: xbegin with its abort address (run only where the
   processor has it), and lea of a label as return address. */
#include "case.h"
#include <cpuid.h>
#include <stdio.h>

static unsigned aborted, value;

NOINLINE unsigned transact(unsigned x, int supported) {
    unsigned status = ~0u;
    if (supported) {
        __asm__ volatile("xbegin 1f\n1:" : "+a"(status) : : "memory");
        if (status == ~0u) {
            value += x;
            __asm__ volatile("xend" ::: "memory");
            return value;
        }
        aborted++;
    }
    value += x;
    return value;
}
NOINLINE unsigned pushes_return(unsigned x) {
    __asm__ volatile("subq $128, %%rsp\n\tleaq 1f(%%rip), %%rcx\n\tpushq %%rcx\n\taddl $4, %0\n\tret\n\tud2\n1:\taddq $128, %%rsp"
                     : "+r"(x) : : "rcx", "memory", "cc");
    return x;
}

int main(void) {
    unsigned a, b = 0, c, d, sum = 32;
    int supported = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 11));
    for (unsigned i = 0; i < 100; i++) {
        sum = mix(sum, transact(opaque(i), supported));
        sum = mix(sum, pushes_return(i));
    }
    printf("%u %08x\n", value, sum);
    return 0;
}
