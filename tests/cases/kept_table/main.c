/* A jump's table is known however many ways its address may have come. */
#include "case.h"
#include <stdio.h>

unsigned kept(unsigned value, unsigned rounds);

int main(void) {
    printf("%u\n", kept(opaque(2463534242u), 1000));
    return 0;
}
