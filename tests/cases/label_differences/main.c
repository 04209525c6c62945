/* Differences of labels in every guise: numbers that the assembler worked out and no relocation tells. A function that
   adds one to a label, wherever the sum is made or kept, must keep its blocks in place. */
#include "case.h"
#include <stdio.h>
#include <string.h>

static const unsigned char code[] = {0, 1, 2, 3, 0, 3, 1, 2, 2, 1, 0, 4};

#define OPERATIONS(next)                                                                                               \
    add:                                                                                                               \
    x += 13;                                                                                                           \
    next;                                                                                                              \
    shift:                                                                                                             \
    x = x << 5 | x >> 27;                                                                                              \
    next;                                                                                                              \
    flip:                                                                                                              \
    x ^= 0x123456;                                                                                                     \
    next;                                                                                                              \
    twice:                                                                                                             \
    x *= 3;                                                                                                            \
    next;                                                                                                              \
    stop:                                                                                                              \
    return x;

#define OFFSETS {&&add - &&add, &&shift - &&add, &&flip - &&add, &&twice - &&add, &&stop - &&add}

/* The base in a variable that nothing else knows. */
NOINLINE unsigned in_variable(const unsigned char *p, unsigned x) {
    static const int offsets[] = OFFSETS;
    static char *volatile base = 0;
    base = (char *)&&add;
    goto *(void *)(base + offsets[*p++]);
    OPERATIONS(goto *(void *)(base + offsets[*p++]))
}

/* The base in a static variable, so that no instruction makes it. */
NOINLINE unsigned in_static(const unsigned char *p, unsigned x) {
    static const int offsets[] = OFFSETS;
    static void *volatile const base = &&add;
    goto *(void *)((char *)base + offsets[*p++]);
    OPERATIONS(goto *(void *)((char *)base + offsets[*p++]))
}

/* Sums kept in a table. */
NOINLINE unsigned in_table(const unsigned char *p, unsigned x) {
    static const long offsets[] = OFFSETS;
    static void *table[5];
    for (int i = 0; i < 5; i++)
        table[i] = (char *)&&add + offsets[i];
    goto *table[*p++];
    OPERATIONS(goto *table[*p++])
}

/* Sums made by another function. */
NOINLINE void *sum_of(void *base, long offset) { return (char *)base + offset; }

NOINLINE unsigned by_another(const unsigned char *p, unsigned x) {
    static const int offsets[] = OFFSETS;
    goto *sum_of(&&add, offsets[*p++]);
    OPERATIONS(goto *sum_of(&&add, offsets[*p++]))
}

/* Differences in instructions, not in a table. */
NOINLINE unsigned in_instructions(unsigned which, unsigned x) {
    char *to = (char *)&&add;
    if (which & 1)
        to += (char *)&&flip - (char *)&&add;
    if (which & 2)
        to += (char *)&&stop - (char *)&&add;
    goto *(void *)to;
    OPERATIONS(return x * which)
}

/* Labels that control also comes to by itself. */
NOINLINE unsigned falling(unsigned from, unsigned x) {
    static const int offsets[] = {&&one - &&three, &&two - &&three, &&three - &&three};
    goto *(void *)((char *)&&three + offsets[from]);
one:
    x = mix(x, 1);
    if (x & 1)
        goto three;
two:
    x = mix(x, 2);
    if (x & 2)
        goto one;
three:
    x = mix(x, 3);
    return x;
}

/* Addresses only: all of this may move. */
NOINLINE unsigned plain(const unsigned char *p, unsigned x) {
    static const void *const table[] = {&&add, &&shift, &&flip, &&twice, &&stop};
    goto *table[*p++];
    OPERATIONS(goto *table[*p++])
}

NOINLINE unsigned chosen(unsigned which, unsigned x) {
    void *to = which & 1 ? &&odd : &&even;
    if (which & 4)
        to = &&four;
    x = mix(x, which);
    goto *to;
odd:
    return x * 3;
even:
    return x + 5;
four:
    return x ^ 0x55;
}

int main(void) {
    unsigned sum = 2;
    for (unsigned i = 0; i < 300; i++) {
        const unsigned char *p = code + opaque(i % 12);
        sum = mix(sum, in_variable(p, sum));
        sum = mix(sum, in_static(p, sum));
        sum = mix(sum, in_table(p, sum));
        sum = mix(sum, by_another(p, sum));
        sum = mix(sum, in_instructions(opaque(i % 3), sum));
        sum = mix(sum, falling(opaque(i % 3), sum));
        sum = mix(sum, plain(p, sum));
        sum = mix(sum, chosen(opaque(i), sum));
    }
    printf("%08x\n", sum);
    return 0;
}
