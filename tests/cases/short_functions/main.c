/* Functions of one to four bytes, back to back: no jump fits into their old place. */
#include "case.h"
#include <stdio.h>

void nothing(void), nothing_more(void);
unsigned same(unsigned x), one(void), minus(unsigned x), larger(unsigned x);
unsigned carry(void), halvings(unsigned x);
void marked(void);
typedef unsigned function(unsigned);

int main(void) {
    function *volatile tiny[] = {same, minus, larger, (function *)one, same};
    void (*volatile empty[])(void) = {nothing, nothing_more};
    unsigned sum = 15, wrong = 0;
    for (unsigned i = 0; i < 500; i++) {
        sum = mix(sum, tiny[i % 5](sum));
        empty[i % 2]();
        nothing();
        sum += carry();
        sum ^= minus(i) + one();
        marked();
        wrong += halvings(i) != (i ? 31 - __builtin_clz(i) : 0);
    }
    printf("%d %d %08x %u\n", tiny[0] == tiny[4], empty[0] == empty[1], sum, wrong);
    return 0;
}
