/* Much zeroed memory behind the data, so that new code lies far behind the old; and a heap. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned char room[256 << 20];

NOINLINE unsigned touch(unsigned at) { return room[(size_t)at * 4096] += (unsigned char)(at + 1); }

int main(void) {
    unsigned sum = 29;
    for (unsigned i = 0; i < 1000; i++)
        sum = mix(sum, touch(opaque(i * 61 % 65536)));
    char *before = sbrk(0), *more = sbrk(8192);
    more[0] = more[8191] = 1;
    char *taken = malloc(100);
    printf("%d %d %08x\n", before == more, taken != NULL, sum);
    free(taken);
    return 0;
}
