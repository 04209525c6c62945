/* Stacks of all shapes: larger than a page with probes, of variable size, realigned for vectors (a frame found through an
   expression), with a red zone, with a protector, and many arguments. */
#include "case.h"
#include <alloca.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef float vector __attribute__((vector_size(32), aligned(32)));

NOINLINE unsigned probed(unsigned n) {
    volatile char room[70000];
    for (unsigned i = 0; i < sizeof room; i += 997)
        room[i] = (char)(i + n);
    unsigned sum = 0;
    for (unsigned i = 0; i < sizeof room; i += 997)
        sum = mix(sum, (unsigned char)room[i]);
    return sum;
}
NOINLINE unsigned variable(unsigned n) {
    unsigned room[n % 200 + 1];
    char *more = alloca(n % 500 + 1);
    memset(room, (int)n, sizeof room);
    memset(more, (int)(n + 1), n % 500 + 1);
    unsigned sum = probed(n);
    return mix(sum, room[n % 200] + (unsigned char)more[n % 500]);
}
NOINLINE void fill(vector *v, unsigned n) {
    for (int i = 0; i < 8; i++)
        (*v)[i] = (float)(n + (unsigned)i);
}
NOINLINE unsigned realigned(unsigned n) {
    vector a, b;
    unsigned misaligned = (unsigned)(unsigned long)&a % 32;
    fill(&a, n);
    fill(&b, n + 3);
    float total = 0;
    for (int i = 0; i < 8; i++)
        total += a[i] * b[7 - i];
    return (unsigned)total + misaligned + variable(n % 3);
}
NOINLINE unsigned red_zone(unsigned a, unsigned b) {
    volatile unsigned room[20];
    for (unsigned i = 0; i < 20; i++)
        room[i] = a + b * i;
    unsigned sum = 0;
    for (unsigned i = 0; i < 20; i++)
        sum = mix(sum, room[(i * 7) % 20]);
    return sum;
}
NOINLINE unsigned many(unsigned count, ...) {
    va_list list;
    unsigned sum = count;
    double total = 0;
    va_start(list, count);
    for (unsigned i = 0; i < count; i++)
        if (i % 2)
            total += va_arg(list, double);
        else
            sum = mix(sum, va_arg(list, unsigned));
    va_end(list);
    return sum + (unsigned)total;
}
NOINLINE unsigned arguments(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g,
                            unsigned long h, double i, unsigned char j) {
    return mix(mix(a ^ b, c + d), mix(e ^ f, g) + (unsigned)h + (unsigned)i + j);
}
NOINLINE unsigned guarded(const char *text) {
    char copy[64];
    strcpy(copy, text);
    unsigned sum = 0;
    for (char *c = copy; *c; c++)
        sum = mix(sum, (unsigned char)*c);
    return sum;
}

int main(void) {
    unsigned sum = 23;
    for (unsigned i = 0; i < 100; i++) {
        sum = mix(sum, variable(opaque(i)));
        sum = mix(sum, realigned(opaque(i)));
        sum = mix(sum, red_zone(sum, i));
        sum = mix(sum, many(opaque(4), 1u, 2.5, 3u, 4.5) + many(1, i));
        sum = mix(sum, arguments(1, 2, 3, 4, 5, i, 7, 8, 9.5, (unsigned char)i));
        sum = mix(sum, guarded("a string that fits"));
    }
    printf("%08x\n", sum);
    return 0;
}
