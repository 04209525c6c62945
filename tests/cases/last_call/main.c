/* See functions.S. */
#include "case.h"
#include <stdio.h>

unsigned thrice(unsigned);
unsigned thrice_plus_one(unsigned);
unsigned thrice_through(unsigned, unsigned (*)(unsigned));
unsigned short_through(unsigned, unsigned (*)(unsigned));
unsigned thrice_and_on(unsigned);
unsigned stops_if_not_zero(unsigned);

int main(void) {
    printf("%u %u\n", thrice_plus_one(opaque(5)), thrice_and_on(opaque(7)));
    printf("%u %u\n", thrice_through(opaque(100), thrice), short_through(opaque(200), thrice));
    printf("%u\n", stops_if_not_zero(opaque(0)));
    return 0;
}
