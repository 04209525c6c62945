/* A function that compares first, jumps through a table, and only then branches on the flags, as gcc schedules it; its tail call through a pointer leads to
   none of these places, whatever flags they read. Nor does one to either of two pointers. */
#include "case.h"
#include <stdio.h>

unsigned chosen(unsigned which, unsigned x);
unsigned chosen_of_two(unsigned which, unsigned x);
unsigned (*volatile otherwise)(unsigned which, unsigned x);
unsigned (*volatile more)(unsigned which, unsigned x);

NOINLINE unsigned plain(unsigned which, unsigned x) { return which * 3 + x; }
NOINLINE unsigned mixed(unsigned which, unsigned x) { return mix(which, x); }

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 60; i++) {
        otherwise = i % 3 ? plain : mixed;
        more = i % 2 ? plain : mixed;
        sum = mix(sum, chosen(i % 7, i));
        sum = mix(sum, chosen_of_two(i % 7, i));
    }
    printf("%08x\n", sum);
    return 0;
}
