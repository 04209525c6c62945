/* Labels, and the address of a jump table, that a function keeps: in a word of its frame that held something else before, and in a
   register across calls of which one never returns. */
#include "case.h"
#include <stdarg.h>
#include <stdio.h>

static void *volatile stored;
NOINLINE void *same(void *p, unsigned x) {
    stored = p;
    return x & 4 ? p : stored;
}

/* The label waits in the frame, where clang pushed a register for the sake of alignment. */
NOINLINE unsigned waits(unsigned x) {
    unsigned n = 0;
    void *p = &&a;
    if (x & 2)
        p = &&b;
    goto *p;
a:
    x = mix(x, opaque(3));
    if (++n > 5)
        return x;
b:
    x = mix(x, opaque(n));
    if (x & 1 && ++n < 4)
        goto *p;
    x ^= opaque(77);
    if (++n < 3)
        goto a;
    return x;
}

NOINLINE unsigned passed(unsigned x) {
    unsigned n = 0;
    void *p;
    stored = &&c;
    if (x % 3 == 0)
        same(&&a, x);
    p = stored;
    goto *p;
a:
    x = mix(x, opaque(3)) % 6;
    if (++n > 5)
        return x;
b:
    x = mix(x, opaque(n)) ^ opaque(x);
    if (x & 1 && ++n < 4)
        goto *p;
c:
    x ^= mix(opaque(9), opaque(x >> 24 | x));
    if (++n < 3)
        goto a;
    if (x == 0x1234567)
        goto b;
    return x;
}

/* The table's address stays in a register; with a stack protector, a call stands among the blocks of the loop. */
NOINLINE unsigned all(unsigned count, ...) {
    va_list list, again;
    unsigned sum = 0;
    va_start(list, count);
    va_copy(again, list);
    for (unsigned i = 0; i < count; i++) {
        switch (i % 4) {
        case 0: sum += va_arg(list, unsigned); break;
        case 1: sum ^= (unsigned)va_arg(list, double); break;
        case 2: sum += (unsigned)va_arg(list, unsigned long); break;
        default: sum += va_arg(list, unsigned (*)(unsigned))(sum); break;
        }
    }
    if (count)
        sum += va_arg(again, unsigned);
    va_end(list);
    va_end(again);
    return sum;
}
NOINLINE unsigned twice(unsigned x) { return 2 * x + 1; }

int main(void) {
    unsigned sum = 5;
    for (unsigned i = 0; i < 100; i++) {
        sum = mix(sum, waits(sum + i));
        sum = mix(sum, passed(sum + i));
        sum = mix(sum, all(opaque(i % 9), i, 3.5 * i, (unsigned long)i << 9, twice, i, 7.25, 1ul, twice, 5u));
    }
    printf("%08x\n", sum);
    return 0;
}
