/* Calls and jumps through pointers of all forms: registers, members, tables, words, arguments on the stack, more targets than are told
   apart, targets in other objects. How often each led where is known. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>

typedef unsigned operation(unsigned, unsigned);
struct object { unsigned pad[3]; operation *methods[2]; };
struct large { unsigned words[20]; };

NOINLINE unsigned plus(unsigned x, unsigned n) { return x + n; }
NOINLINE unsigned minus(unsigned x, unsigned n) { return x - n; }
NOINLINE unsigned times(unsigned x, unsigned n) { return x * n; }
NOINLINE unsigned of_large(unsigned x, struct large all) { return mix(x, all.words[x % 20]); }

#define ONE(n) NOINLINE unsigned one_##n(unsigned x, unsigned y) { return mix(x * n, y); }
ONE(0) ONE(1) ONE(2) ONE(3) ONE(4) ONE(5) ONE(6) ONE(7) ONE(8) ONE(9) ONE(10) ONE(11)
static operation *const many[] = {one_1, one_0, one_3, one_2, one_5, one_4, one_7, one_6, one_9, one_8, one_11, one_10};
static operation *const three[] = {plus, minus, times};
operation *word = minus;
static unsigned (*volatile large)(unsigned, struct large) = of_large;

NOINLINE unsigned by_register(operation *f, unsigned x) { return f(x, 3) ^ 1; }
NOINLINE unsigned by_member(struct object *o, unsigned i, unsigned x) { return o->methods[i](x, 5) ^ 2; }
NOINLINE unsigned by_table(unsigned i, unsigned x) { return three[i](x, 7) ^ 3; }
NOINLINE unsigned by_word(unsigned x) { return word(x, 9) ^ 4; }
NOINLINE unsigned by_jump(operation *f, unsigned x) { return f(x, 11); }
NOINLINE unsigned by_member_jump(struct object *o, unsigned x) { return o->methods[1](x, 13); }
NOINLINE unsigned to_many(unsigned i, unsigned x) { return many[i](x, 15) ^ 5; }
NOINLINE unsigned with_stack(unsigned x) {
    struct large all;
    for (unsigned i = 0; i < 20; i++)
        all.words[i] = x * i;
    return large(x, all) ^ 6;
}
NOINLINE int outside(int (*f)(int), int x) { return f(x) + 1; }

int main(void) {
    unsigned sum = 5;
    for (unsigned i = 0; i < 600; i++) {
        struct object o = {{i, i, i}, {plus, i % 4 ? minus : times}};
        sum = mix(sum, by_register(three[opaque(i % 3)], sum));
        sum = mix(sum, by_member(&o, opaque(i % 2), sum));
        sum = mix(sum, by_table(opaque(i % 5 ? 0 : 2), sum));
        sum = mix(sum, by_word(sum));
        sum = mix(sum, by_jump(three[opaque(i % 6 ? 1 : 0)], sum));
        sum = mix(sum, by_member_jump(&o, sum));
        sum = mix(sum, to_many(opaque(i % 12), sum));
        sum = mix(sum, with_stack(sum));
        sum = mix(sum, (unsigned)outside(opaque(1) ? abs : NULL, (int)(sum >> 8)));
    }
    printf("%08x\n", sum);
    return 0;
}
