/* Functions' addresses with constants added that stay inside of the function: tags in the bits that alignment leaves free, and
   distances. The sum is where an instruction starts, but that is not what it means. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
unsigned tagged(unsigned), distant(unsigned), named_in_code(unsigned), beside(unsigned), around(unsigned);
uintptr_t behind(void);
extern const uintptr_t words[3];

NOINLINE static function *exactly(uintptr_t word, unsigned distance) { return (function *)(word - distance); }
NOINLINE static function *without_tag(uintptr_t word) { return (function *)(word & -(uintptr_t)16); }

int main(void) {
    unsigned sum = 1;
    for (unsigned x = 0; x < 8; x++) {
        sum = mix(sum, without_tag(words[opaque(0)])(x));
        sum = mix(sum, exactly(words[opaque(1)], 16)(x));
        sum = mix(sum, exactly(words[opaque(2)], 16)(x));
        sum = mix(sum, exactly(behind(), 16)(x));
        sum = mix(sum, beside(x) + around(x) + tagged(x) + distant(x) + named_in_code(x));
    }
    printf("%08x\n", sum);
    return 0;
}
