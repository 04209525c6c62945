/* Hand-written assembly as it is found in the wild: no .size, no .type, a second entry in the middle, nested symbols,
   a tail that two functions share. */
#include "case.h"
#include <stdio.h>

unsigned sizeless(unsigned x), sizeless_next(unsigned x), typeless(unsigned x);
unsigned entry_far(unsigned x), entry_near(unsigned x);
unsigned outer(unsigned x), inner(unsigned x);
unsigned first_user(unsigned x), second_user(unsigned x);
unsigned from_c(unsigned x) { return x ^ 0x7e57; }

typedef unsigned function(unsigned);
function *const table[] = {sizeless, sizeless_next, typeless,   entry_far,  entry_near,
                           outer,    inner,         first_user, second_user};

int main(void) {
    unsigned sum = 6;
    for (unsigned i = 0; i < 9; i++)
        printf("%08x\n", table[i](opaque(i + 1)));
    for (unsigned i = 0; i < 450; i++) {
        sum = mix(sum, table[opaque(i % 9)](sum));
        sum = mix(sum, entry_near(sum) + inner(sum) + sizeless(i));
    }
    printf("%08x\n", sum);
    return 0;
}
