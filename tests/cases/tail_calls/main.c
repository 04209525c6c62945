/* Calls that are jumps: to a function, through a register, through memory, in a cycle of three, and conditional ones. */
#include "case.h"
#include <stdio.h>

typedef unsigned step(unsigned, unsigned);
struct object { unsigned pad; step *method; };

static unsigned trace;

NOINLINE unsigned leaf(unsigned x, unsigned n) { trace = mix(trace, x); return x ^ n; }
NOINLINE unsigned even(unsigned x, unsigned n);
NOINLINE unsigned odd(unsigned x, unsigned n);
NOINLINE unsigned third(unsigned x, unsigned n) {
    trace += 3;
    return even(x * 3, n - 1);
}
NOINLINE unsigned odd(unsigned x, unsigned n) {
    trace = mix(trace, n);
    return n == 0 ? x : third(x + 1, n - 1);
}
NOINLINE unsigned even(unsigned x, unsigned n) {
    if (n < 3)
        return leaf(x, n);
    return odd(x ^ n, n - 1);
}
NOINLINE unsigned through_register(step *f, unsigned x) { trace++; return f(x, 40); }
NOINLINE unsigned through_memory(struct object *o, unsigned x) { trace ^= 5; return o->method(x, 20); }

/* clang makes `jcc leaf` of these. */
NOINLINE unsigned conditional(unsigned x, unsigned n) {
    if (n > 10)
        return leaf(x, n);
    return x + 1;
}
NOINLINE unsigned either(unsigned x, unsigned n) {
    if (x & 1)
        return leaf(x, n);
    return even(x, n);
}

int main(void) {
    static step *const steps[] = {leaf, even, odd, third, conditional, either};
    unsigned sum = 11;
    for (unsigned i = 0; i < 120; i++) {
        struct object o = {i, steps[opaque((i + 1) % 6)]};
        unsigned n = opaque(30 - i % 7 * 3);
        sum = mix(sum, even(sum, n));
        sum = mix(sum, conditional(sum, opaque(i % 20)));
        sum = mix(sum, either(sum, n));
        sum = mix(sum, through_register(steps[opaque(i % 6)], sum));
        sum = mix(sum, through_memory(&o, sum));
    }
    printf("%08x %08x\n", sum, trace);
    return 0;
}
