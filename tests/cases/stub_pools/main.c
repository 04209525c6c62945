/* Gives away the stubs of a pool one after the other. */
#include "case.h"
#include <stdio.h>

typedef unsigned callback(unsigned);
extern char stubs[];

NOINLINE callback *allocate(unsigned which) { return (callback *)(void *)(stubs + 16 * which); }

int main(void) {
    unsigned sum = 1;
    callback *all[8];
    for (unsigned i = 0; i < 8; i++) all[i] = allocate(opaque(i));
    for (unsigned i = 0; i < 64; i++) sum = mix(sum, all[opaque(i) % 8](sum));
    printf("%08x\n", sum);
    return 0;
}
