/* A function in assembly that sums an array by taking its words off a stack, with every register and the flags in use: nobody else's code may write
   below the stack pointer there, where the words in front of the array's rest stand. And functions that give up room on the stack in ways
   that compilers have, where it may. */
#include "case.h"
#include <stdio.h>
#include <string.h>

unsigned long sum_off_stack(const unsigned long *words, unsigned long count);

NOINLINE unsigned of_variable_size(unsigned count, unsigned (*value)(unsigned)) {
    unsigned sum = 0;
    for (unsigned i = 1; i < count; i++) {
        unsigned parts[i];
        for (unsigned j = 0; j < i; j++) parts[j] = value(j);
        sum = mix(sum, parts[opaque(i) / 2]);
    }
    return sum;
}

NOINLINE unsigned aligned(unsigned count, unsigned (*value)(unsigned)) {
    _Alignas(64) unsigned parts[16];
    char *more = __builtin_alloca(opaque(count) + 1);
    memset(more, (int)count, count + 1);
    for (unsigned i = 0; i < 16; i++) parts[i] = value(i) + (unsigned char)more[count];
    return mix(parts[count & 15], (unsigned)((unsigned long)parts & 63));
}

NOINLINE unsigned square(unsigned x) { return x * x; }
NOINLINE unsigned twice(unsigned x) { return x + x; }

int main(void) {
    static unsigned long words[120];
    for (unsigned i = 0; i < 120; i++) words[i] = (i + 1) * 0x9e3779b97f4a7c15ul;
    unsigned long sum = sum_off_stack(words + 40, 64), all = 0;
    for (unsigned i = 0; i < 120; i++) all = all * 31 + words[i];
    printf("%lx %lx\n", sum, all);
    for (unsigned i = 3; i < 20; i += 7)
        printf("%08x %08x\n", of_variable_size(i, i & 1 ? square : twice), aligned(i, i & 2 ? square : twice));
    return 0;
}
