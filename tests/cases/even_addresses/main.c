/* Functions of odd sizes whose addresses are taken. Each starts at an even address, also where functions are packed:
   C++ keeps in the lowest bit of a pointer to a member function whether it is one. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
#define FUNCTION(name, number) \
    __attribute__((noinline)) unsigned name(unsigned x) { return opaque(x) * number + number; }
FUNCTION(f0, 3)
FUNCTION(f1, 300)
FUNCTION(f2, 5)
FUNCTION(f3, 70000)
FUNCTION(f4, 9)
FUNCTION(f5, 1000)
FUNCTION(f6, 7)
FUNCTION(f7, 11)

int main(void) {
    function *volatile all[] = {f0, f1, f2, f3, f4, f5, f6, f7};
    unsigned sum = 0, odd = 0;
    for (unsigned i = 0; i < 8; i++) {
        odd += (uintptr_t)all[i] & 1;
        sum = mix(sum, all[i](i));
    }
    printf("%u %08x\n", odd, sum);
    return 0;
}
