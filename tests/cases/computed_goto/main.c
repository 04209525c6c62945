/* Computed gotos: a static table of labels, labels taken one by one into local variables and a structure, and a table of
   label differences, which leaves no relocation at all. */
#include "case.h"
#include <stdio.h>

NOINLINE unsigned from_table(const unsigned char *code, unsigned x) {
    static const void *const labels[] = {&&add, &&shift, &&flip, &&stop, &&twice};
    goto *labels[*code];
add:
    x += 7;
    goto *labels[*++code];
shift:
    x = x << 3 | x >> 29;
    goto *labels[*++code];
flip:
    x ^= 0xabcdef;
    goto *labels[*++code];
twice:
    x *= 2;
    goto *labels[*++code];
stop:
    return x;
}

struct resume {
    void *where;
    unsigned count;
};

/* A coroutine: the label to resume at is kept between calls. */
NOINLINE unsigned resume(struct resume *r, unsigned x) {
    if (r->where)
        goto *r->where;
    r->where = &&first;
    return x + 1;
first:
    r->where = &&second;
    r->count += x;
    return x * 3;
second:
    if (x & 1) {
        r->where = &&third;
        return x ^ 0x55;
    }
    r->where = &&first;
    return r->count;
third:
    r->where = &&second;
    return r->count - x;
}

NOINLINE unsigned picked(unsigned which, unsigned x) {
    void *to = which == 0 ? &&zero : which == 1 ? &&one : &&many;
    for (int i = 0; i < 3; i++) {
        x += 5;
        goto *to;
    zero:
        x *= 3;
        to = &&one;
        continue;
    one:
        x ^= 99;
        to = &&many;
        continue;
    many:
        x -= 1234;
        to = which ? &&zero : &&one;
    }
    return x;
}

int main(void) {
    static const unsigned char code[] = {0, 1, 2, 4, 0, 0, 1, 4, 2, 2, 1, 0, 3};
    struct resume r = {0, 0};
    unsigned sum = 9;
    for (unsigned i = 0; i < 300; i++) {
        sum = mix(sum, from_table(code + opaque(i % 13), sum));
        sum = mix(sum, resume(&r, sum));
        sum = mix(sum, picked(opaque(i % 3), sum));
    }
    printf("%u %08x\n", r.count, sum);
    return 0;
}
