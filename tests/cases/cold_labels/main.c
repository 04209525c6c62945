/* An interpreter by computed gotos: operations that are not in use end the program, so the compiler puts their labels away from the others, each right
   behind the call that ended the one before. They are no return addresses that somebody looks up. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline, noreturn, cold)) static void unused(unsigned operation) {
    printf("no operation %u\n", operation);
    exit(0);
}

NOINLINE long run(const unsigned char *at, long value) {
    static const void *const operations[] = {&&add, &&multiply, &&negate, &&leave, &&unused4, &&unused5, &&unused6, &&unused7};
#define NEXT goto *operations[*at++ & 7]
    NEXT;
add:
    value += *at++;
    NEXT;
multiply:
    value *= *at++;
    NEXT;
negate:
    value = -value;
    NEXT;
leave:
    return value;
unused4:
    unused(4);
unused5:
    unused(5);
unused6:
    unused(6);
unused7:
    unused(7);
}

int main(void) {
    unsigned char program[] = {0, 3, 1, 5, 2, 0, 9, 3, 0};
    unsigned sum = 0;
    for (unsigned i = 0; i < 50; i++) {
        program[1] = (unsigned char)opaque(i);
        sum = mix(sum, (unsigned)run(program, i));
    }
    printf("%08x\n", sum);
    fflush(stdout);
    program[7] = 6;
    return (int)run(program, 1);
}
