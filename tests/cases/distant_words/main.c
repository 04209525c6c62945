/* A word's own address and its number lead to a constant's distance from a function: that constant off, to the function. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
unsigned first(unsigned), second(unsigned), third(unsigned), fourth(unsigned), inner(unsigned);
extern const int32_t words[7];

NOINLINE static function *named(unsigned i, long constant) { return (function *)((uintptr_t)&words[i] + words[i] - constant); }

int main(void) {
    function *volatile all[] = {first, second, third, fourth};
    function *volatile found[] = {named(opaque(0), 64), named(opaque(2), -4096), named(opaque(4), 0x100000), named(opaque(6), 32)};
    for (unsigned i = 0; i < 4; i++)
        printf("%u %d\n", found[i](5), found[i] == all[i]);
    printf("%u %u\n", fourth(0), fourth(1));
    return 0;
}
