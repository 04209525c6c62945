/* Code and data without a name, which look like padding behind a function. */
#include "case.h"
#include <stdio.h>

unsigned leads_behind(unsigned, unsigned), reads_behind(unsigned), reads_found(unsigned);
void nothing(void), nothing_else(void), nothing_more(void);

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 31; i++) {
        nothing();
        nothing_else();
        nothing_more();
        sum = mix(sum, leads_behind(i, sum));
        sum = mix(sum, reads_behind(opaque(i)));
        sum = mix(sum, reads_found(opaque(i)));
    }
    printf("%08x\n", sum);
    return 0;
}
