/* Of a function that nothing reaches, gcc leaves a name without code, among what hardly runs: where another one's `.cold` begins. Its name may
   be known everywhere, its address may be taken. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>

void nothing(void) { __builtin_unreachable(); }
__attribute__((used)) static void nothing_here(void) { __builtin_unreachable(); }

/* Where it goes to its cold part, flags are still read behind that. */
NOINLINE unsigned first(const unsigned *values, unsigned count) {
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (values[i] == 4711)
            abort();
        sum = mix(sum, values[i]);
    }
    return sum;
}

void nothing_more(void) { __builtin_unreachable(); }

NOINLINE unsigned second(unsigned x) {
    if (x == 99)
        abort();
    return x % 7 ? mix(x, 3) : x;
}

void (*volatile known)(void) = nothing;

int main(void) {
    unsigned values[32], sum = known != NULL;
    for (unsigned i = 0; i < 32; i++)
        values[i] = i * 37 + 5;
    for (unsigned i = 0; i < 60; i++) {
        sum = mix(sum, first(values, opaque(i % 32)));
        sum = mix(sum, second(opaque(i)));
    }
    printf("%08x\n", sum);
    return 0;
}
