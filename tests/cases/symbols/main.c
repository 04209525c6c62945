/* Several names for one function, weak ones, one that was overridden, and two local functions of the same name. */
#include "case.h"
#include <stdio.h>

typedef unsigned function(unsigned);
NOINLINE unsigned real(unsigned x) { return x * 31 + 7; }
unsigned alias_of_real(unsigned x) __attribute__((alias("real")));
unsigned weak_alias(unsigned x) __attribute__((weak, alias("real")));
__attribute__((weak)) NOINLINE unsigned replaced(unsigned x) { return x; }
__attribute__((weak)) NOINLINE unsigned kept(unsigned x) { return x ^ 0x1234; }
extern unsigned missing(unsigned x) __attribute__((weak));
extern function *const other_local;
static NOINLINE unsigned local(unsigned x) { return x + 100; }

int main(void) {
    function *volatile names[] = {real, alias_of_real, weak_alias, replaced, kept, local, other_local};
    unsigned sum = 4;
    for (unsigned i = 0; i < 210; i++)
        sum = mix(sum, names[i % 7](sum));
    printf("%d %d %d %d\n", names[0] == names[1], names[1] == names[2], names[5] == names[6], missing != 0);
    printf("%08x\n", sum);
    return 0;
}
