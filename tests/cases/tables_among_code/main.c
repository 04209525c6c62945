/* Interpreters whose tables stand beside their code. */
#include "case.h"
#include <stdio.h>

unsigned by_bytes(const unsigned char *), by_words(const unsigned char *), by_relocations(unsigned which, unsigned x);

int main(void) {
    unsigned sum = 1;
    unsigned char code[64];
    for (unsigned i = 0; i < 24; i++) {
        for (unsigned at = 0; at < sizeof code - 1; at++) code[at] = (unsigned char)(opaque(i * 7 + at * 5) % 3);
        code[sizeof code - 1] = 3;
        sum = mix(sum, by_bytes(code));
        sum = mix(sum, by_words(code));
        sum = mix(sum, by_relocations(opaque(i) % 4, sum));
    }
    printf("%08x\n", sum);
    return 0;
}
