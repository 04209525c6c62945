/* Hand-written assembly with data among its code: what reads as a jump into the next function may be a text. The
   function that it seems to enter stays, and nothing else does. */
#include "case.h"
#include <stdio.h>

unsigned before(unsigned x), behind(unsigned x), named(unsigned x), labelled(unsigned x), tabled(unsigned x);

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 8; i++)
        printf("%08x %08x %08x %08x %08x\n", before(i), behind(i), named(i), labelled(i), tabled(i));
    for (unsigned i = 0; i < 1000; i++)
        sum = mix(sum, before(sum) + behind(i) + named(sum) + labelled(i) + tabled(sum));
    printf("%08x\n", sum);
    return 0;
}
