/* Functions in a section of their own, whose bounds the program asks the linker for: a function that is checked to lie within
   can't be moved out. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
extern const char __start_fenced[], __stop_fenced[];
#define FENCED __attribute__((section("fenced"))) NOINLINE

FENCED unsigned inside_a(unsigned x) { return x % 3 ? x + 4 : x * 4; }
FENCED unsigned inside_b(unsigned x) {
    unsigned sum = 0;
    for (unsigned i = 0; i < x % 16; i++)
        sum = mix(sum, i);
    return sum;
}
NOINLINE unsigned outside(unsigned x) { return inside_a(x) ^ 0x5050; }
NOINLINE int is_fenced(function *f) {
    return (uintptr_t)f >= (uintptr_t)__start_fenced && (uintptr_t)f < (uintptr_t)__stop_fenced;
}

int main(void) {
    function *volatile all[] = {inside_a, inside_b, outside};
    unsigned sum = 27;
    for (unsigned i = 0; i < 99; i++)
        sum = mix(sum, all[i % 3](sum));
    printf("%d %d %d %08x\n", is_fenced(all[0]), is_fenced(all[1]), is_fenced(all[2]), sum);
    return 0;
}
