/* Calls code as its runtime does: from the start of all of it, by a table of distances. */
#include "case.h"
#include <stdio.h>

extern const char go[] __asm__("runtime.text"), blob[] __asm__("v8_Default_embedded_blob_code_");
extern const unsigned go_table[2] __asm__("runtime.pclntab");
extern const unsigned blob_table[2] __asm__("v8_Default_embedded_blob_data_");
unsigned between(unsigned);

typedef unsigned function(unsigned);

NOINLINE unsigned call(const char *start, unsigned distance, unsigned x) {
    return ((function *)(start + opaque(distance)))(x);
}

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 40; i++) {
        sum = mix(sum, call(go, go_table[i % 2], sum));
        sum = mix(sum, call(blob, blob_table[i % 3 == 0], sum) + between(sum));
    }
    printf("%08x\n", sum);
    return 0;
}
