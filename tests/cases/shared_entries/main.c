/* An interpreter's machine in assembly, as LuaJIT's: many functions lie under one unwind entry, which tells how the stack stands inside of them all
   and so not how it stands at their starts. A function that leaves for one of them by its last jump may stand in place of calls, or not; the program is the same. */
#include "case.h"
#include <stdio.h>

long machine_call(long value, long (*step)(long));
long machine_leave(long value);

static long counter, others[8];

static long twice(long x) { return 2 * x; }

NOINLINE long run(long x, long n) {
    if (n > 3) {
        counter += n * x;
        others[x & 7] ^= n;
    } else {
        counter ^= x;
        if (x == 77) printf("rare %ld\n", x);
    }
    return machine_call(x, twice);
}

NOINLINE long use(long x, long n) {
    long result = run(x, n);
    return result + counter + others[x & 3];
}

int main(void) {
    unsigned sum = 0;
    for (int i = 0; i < 200; i++) sum = mix(sum, (unsigned)(use(i, opaque(5)) + machine_leave(use(i + 1, opaque(2)))));
    printf("%08x %ld\n", sum, counter);
    return 0;
}
