/* Functions with entries close to one another, each entered directly, by pointer, and by the one before it. */
#include "case.h"
#include <stdio.h>

typedef unsigned function(unsigned);
unsigned add_mix_roll(unsigned), mix_roll(unsigned), roll(unsigned), typeless(unsigned), sizeless(unsigned), before_label(unsigned),
    label(unsigned), bare(unsigned), bare_label(unsigned), far_entry(unsigned), near_entry(unsigned), reader(unsigned), close(unsigned),
    closer(unsigned);

NOINLINE unsigned from_c(unsigned x) { return x ^ 0x55; }

int main(void) {
    static function *const all[] = {add_mix_roll, mix_roll, roll, typeless, sizeless, far_entry, near_entry, close, closer};
    unsigned sum = 1;
    for (unsigned i = 0; i < 2 * sizeof all / sizeof *all; i++)
        sum = mix(sum, all[opaque(i) % (sizeof all / sizeof *all)](sum));
    printf("%08x\n", sum);
    for (unsigned x = 0; x < 4; x++) {
        sum = mix(sum, add_mix_roll(x) + mix_roll(x) + roll(x));
        sum = mix(sum, typeless(x) + sizeless(x) + before_label(x) + label(x));
        sum = mix(sum, bare(x) + bare_label(x) + far_entry(x) + near_entry(x) + close(x) + closer(x));
        sum = mix(sum, x ? reader(x) : 0);
    }
    printf("%08x\n", sum);
    return 0;
}
