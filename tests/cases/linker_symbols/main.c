/* Symbols of the linker that bound the program's own text and data: read, ordered, and the bytes between them summed. */
#include "case.h"
#include <stdio.h>
#include <unistd.h>

extern const unsigned char __executable_start[], etext[], edata[], end[];
extern const unsigned char __ehdr_start[] __attribute__((visibility("hidden"), weak));
static unsigned large[100000];

NOINLINE unsigned sum_of(const unsigned char *from, const unsigned char *to) {
    unsigned sum = 0;
    for (; from < to; from += 16)
        sum = mix(sum, *from);
    return sum;
}

int main(void) {
    unsigned first = sum_of(__executable_start, __executable_start + 64);
    large[opaque(5)] = first;
    volatile unsigned text = sum_of(main == 0 ? NULL : etext - 64, etext);
    (void)text;
    printf("%d %d %d\n", __executable_start < etext, etext < edata, edata <= end);
    printf("%d %d\n", (const unsigned char *)large < end, (unsigned char *)sbrk(0) >= end);
    printf("%c%c%c %d\n", __executable_start[1], __executable_start[2], __executable_start[3], first != 0);
    return 0;
}
