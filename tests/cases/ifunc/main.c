/* Functions chosen when the program starts: by a resolver of its own and by target_clones. Through the PLT, through a
   pointer in data, and compared. In a static program these are IRELATIVE relocations that the start-up code applies. */
#include "case.h"
#include <stdio.h>

typedef unsigned function(unsigned);
static unsigned resolved;

NOINLINE unsigned plain(unsigned x) { return x * 7 + 1; }
NOINLINE unsigned fancy(unsigned x) { return (x << 3) - x + 1; }
static function *choose(void) {
    resolved++;
    return sizeof(long) == 8 ? fancy : plain;
}
unsigned chosen(unsigned x) __attribute__((ifunc("choose")));

__attribute__((target_clones("avx2", "sse4.2", "default"))) unsigned cloned(const unsigned *values, unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += values[i] * 2654435761u;
    return sum;
}

function *const in_data = chosen;

int main(void) {
    unsigned values[100], sum = 19;
    function *volatile pointer = chosen;
    for (unsigned i = 0; i < 100; i++)
        values[i] = i * i + 3;
    for (unsigned i = 0; i < 100; i++) {
        sum = mix(sum, chosen(sum));
        sum = mix(sum, pointer(i) + in_data(sum));
        sum = mix(sum, cloned(values, opaque(i)));
    }
    printf("%d %08x\n", pointer == in_data, sum);
    return 0;
}
