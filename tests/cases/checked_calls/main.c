/* Calls by pointer that are checked as clang's -fsanitize=cfi does it: a function is one of the right type if its distance
   from the start of a table of jumps says so. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
unsigned red(unsigned x), green(unsigned x), blue(unsigned x);
unsigned other(unsigned x) { return x; }

NOINLINE unsigned call(function *pointer, unsigned x) {
    uint64_t distance = (uint64_t)pointer - (uint64_t)red;
    uint64_t row = distance >> 3 | distance << 61;
    return row < 3 ? pointer(x) : 0xbad;
}

int main(void) {
    function *volatile functions[] = {red, green, blue, other};
    unsigned sum = 0;
    for (unsigned i = 0; i < 4; i++)
        printf("%x\n", call(functions[i], 10));
    for (unsigned i = 0; i < 400; i++)
        sum = mix(sum, call(functions[i % 4], i));
    printf("%08x\n", sum);
    return 0;
}
