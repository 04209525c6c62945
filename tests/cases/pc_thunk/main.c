/* Code that learns its own address by call and pop, as position-independent 32-bit code did, and reads data beside it. */
#include "case.h"
#include <stdio.h>

unsigned here_and_data(unsigned x), through_thunk(unsigned x);

int main(void) {
    unsigned sum = 12;
    for (unsigned i = 0; i < 100; i++) {
        sum = mix(sum, here_and_data(opaque(i)));
        sum = mix(sum, through_thunk(sum));
    }
    printf("%08x\n", sum);
    return 0;
}
