/* The smallest program that does something: what is written must stay small too. */
#include "case.h"
#include <stdio.h>

NOINLINE unsigned work(unsigned n) {
    unsigned sum = n;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        sum = mix(sum, n);
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc > 1 && argv[1][0] == 'x')
        return 7;
    printf("%08x\n", work(27));
    return 42;
}
