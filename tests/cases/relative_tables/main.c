/* A program that finds which of its functions an address is in: by searching a table in the order of their addresses, of numbers that count from where
   they stand, as whoever wants no relocations writes it. The table of handlers is of the same kind and nobody searches it: its functions may move. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

#define FUNCTION(n) NOINLINE int sorted##n(int x) { return x > n ? x * (n + 3) : x - n; }
#define HANDLER(n) NOINLINE int handler##n(int x) { return (x ^ n) + 1; }
#define ALL(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9)
ALL(FUNCTION)
ALL(HANDLER)

#define ROW(name, n) "\t.long " name #n " - .\n"
#define SORTED(n) ROW("sorted", n)
#define HANDLERS(n) ROW("handler", n)
__asm__("\t.section .rodata\n\t.balign 4\n"
        "\t.type places, @object\nplaces:\n" ALL(SORTED) "\t.size places, . - places\n"
        "\t.skip 128\n\t.type handlers, @object\nhandlers:\n" ALL(HANDLERS) "\t.size handlers, . - handlers\n\t.text\n");
extern const int places[] __attribute__((visibility("hidden")));
extern const int handlers[] __attribute__((visibility("hidden")));

NOINLINE int which(uintptr_t address) {
    int low = 0, high = 10;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if ((uintptr_t)&places[middle] + (intptr_t)places[middle] <= address) low = middle;
        else high = middle;
    }
    return low;
}

NOINLINE int handle(unsigned n, int x) {
    int (*handler)(int) = (int (*)(int))((uintptr_t)&handlers[n] + (intptr_t)handlers[n]);
    return n < 10 ? handler(x) : 0;
}

int main(void) {
#define ADDRESS(n) sorted##n,
    int (*functions[])(int) = {ALL(ADDRESS)};
    unsigned sum = 0;
    for (unsigned i = 0; i < 10; i++) {
        unsigned n = opaque(i * 7 % 10);
        printf("%d", which((uintptr_t)functions[n]));
        sum = mix(sum, (unsigned)(functions[n]((int)i) + handle(n, (int)i)));
    }
    printf(" %08x\n", sum);
    return 0;
}
