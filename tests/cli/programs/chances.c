/* Takes one way of four, and calls one of two functions three times of four, for as many rounds as it is told. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned seldom, often;

__attribute__((noinline)) static void first(unsigned i) { often += i; }
__attribute__((noinline)) static void second(unsigned i) { seldom += i; }

static void (*volatile calls[4])(unsigned) = {first, first, second, first};

__attribute__((noinline)) void decides(unsigned random) {
    if ((random >> 16) % 4 == 0)
        seldom++;
    else
        often++;
    calls[(random >> 20) % 4](random);
}

int main(int count, char **arguments) {
    unsigned random = 1;
    for (long i = count > 1 ? atol(arguments[1]) : 10000000; i > 0; i--) {
        random = random * 69069 + 1;
        decides(random);
    }
    printf("%u %u\n", seldom, often);
    return 0;
}
