/* Data that holds addresses inside of functions: a label that has no symbol, function + offset, and a continuation that was
   stored by the code itself. */
#include "case.h"
#include <stdio.h>

typedef unsigned function(unsigned);
extern function *const inside[3];
unsigned body(unsigned x), resumed(unsigned x), jump_to(unsigned x, const void *where);

int main(void) {
    unsigned sum = 16;
    for (unsigned i = 0; i < 300; i++) {
        sum = mix(sum, inside[opaque(i % 3)](sum));
        sum = mix(sum, body(opaque(i)));
        sum = mix(sum, resumed(sum));
    }
    printf("%08x\n", sum);
    return 0;
}
