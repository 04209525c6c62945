/* Two switches in one function and two more in the next: four tables stand back to back in .rodata, so that a
   table whose end is guessed from the next reference, or not at all, takes entries of its neighbour. */
#include "case.h"
#include <stdio.h>

static unsigned log_of[64];
static unsigned logged;
NOINLINE void note(unsigned what) { log_of[logged++ % 64] += what; }

unsigned by_distance(unsigned);
unsigned by_address(unsigned);
unsigned by_turns(unsigned);

NOINLINE unsigned two(unsigned a, unsigned b, unsigned x) {
    switch (a) {
    case 0: note(1); x += 3; break;
    case 1: x *= 5; note(x); break;
    case 2: note(x ^ 9); break;
    case 3: x = x >> 1 | x << 31; note(4); break;
    case 4: note(7); note(x); x -= 77; break;
    case 5: x ^= 0x33; note(10); break;
    }
    switch (b) {
    case 10: note(x + 1); x ^= 0xff; break;
    case 11: note(x * 2); break;
    case 12: x += x << 4; note(3); break;
    case 13: note(100); x /= 3; break;
    case 14: x = ~x; note(5); break;
    case 15: note(x & 15); x -= 5; break;
    case 16: x += 1000; note(8); break;
    }
    return x;
}

NOINLINE unsigned again(unsigned a, unsigned x) {
    for (unsigned i = 0; i < 3; i++) {
        switch (a % 6) {
        case 0: x += 9; note(a); break;
        case 1: note(x); a += 4; break;
        case 2: x ^= a; note(2); break;
        case 3: note(x / 3); a++; break;
        case 4: x *= 11; a += 7; note(6); break;
        default: note(a ^ x); x--; break;
        }
        switch (x % 7) {
        case 0: note(11); x += 2; break;
        case 1: x += a; note(1); break;
        case 2: note(x + a); break;
        case 3: x ^= 5; note(13); break;
        case 4: x -= 3; note(a); break;
        case 5: note(15); a ^= 1; break;
        default: note(16); x *= 3; break;
        }
    }
    return x + a;
}

int main(void) {
    unsigned sum = 7;
    for (unsigned i = 0; i < 900; i++) {
        sum = mix(sum, two(opaque(i % 7), opaque(9 + i % 9), sum));
        sum = mix(sum, again(opaque(i), sum));
        sum = mix(sum, by_distance(i) + by_address(opaque(i)));
        sum = mix(sum, by_turns(opaque(i)));
    }
    for (unsigned i = 0; i < 64; i++)
        sum = mix(sum, log_of[i]);
    printf("%u %08x\n", logged, sum);
    return 0;
}
