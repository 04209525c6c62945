/* Instructions that reach data relative to themselves, in all their lengths: SSE and AVX constants, an immediate behind the
   displacement, read-modify-write, addresses of strings, and a table of floating point numbers. */
#include "case.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static volatile uint8_t byte_value;
static volatile uint16_t word_value;
static volatile uint32_t long_value;
static volatile uint64_t quad_value;

NOINLINE unsigned immediates(unsigned n) {
    byte_value = 0x5a;
    word_value = 0x1234;
    long_value = 0x89abcdef;
    quad_value = 77;
    byte_value += 3;
    word_value ^= 0x0ff0;
    long_value -= 1000000;
    quad_value |= 0x40000000;
    if (byte_value == 0x5d)
        n += 3;
    if (word_value > 0x1000)
        n ^= 0x77;
    if (long_value & 0x10000)
        n++;
    quad_value <<= 3;
    return n + byte_value + word_value + long_value + (unsigned)quad_value;
}
NOINLINE double polynomial(double x) {
    return ((1.25 * x - 0.75) * x + 3.0e-3) * x - 1024.5 + (x > 100.0 ? 2.0 : -2.0) * fabs(x);
}
NOINLINE float single(float x) { return -x * 1.5f + (x < 2.5f ? 0.125f : 8.0f); }
NOINLINE unsigned rounded(double x) { return (unsigned)(int64_t)(x * 1000.0 + 0.5); }
typedef uint32_t lanes __attribute__((vector_size(16)));
NOINLINE unsigned vectors(unsigned n) {
    lanes v = {n, n + 1, n + 2, n + 3};
    v = v * (lanes){3, 5, 7, 11} ^ (lanes){0xdeadbeef, 0xcafef00d, 0x8badf00d, 0x12345678};
    v += (lanes){1, 2, 3, 4};
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
NOINLINE const char *text(unsigned n) { return n == 0 ? "nothing" : n == 1 ? "something" : n < 10 ? "some" : "many things"; }
typedef float wide __attribute__((vector_size(32)));
__attribute__((target("avx2"))) NOINLINE unsigned wide_vectors(unsigned n) {
    wide v = {1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f, 8.5f};
    float total = 0;
    v = v * (wide){2, 3, 4, 5, 6, 7, 8, 9} + (float)n;
    for (int i = 0; i < 8; i++)
        total += v[i];
    return (unsigned)total;
}

int main(void) {
    unsigned sum = 24;
    int has_avx2 = __builtin_cpu_supports("avx2") != 0;
    for (unsigned i = 0; i < 200; i++) {
        sum = mix(sum, immediates(opaque(i)));
        sum = mix(sum, rounded(polynomial((double)opaque(i))));
        sum = mix(sum, (unsigned)(int)(single((float)opaque(i % 7)) * 64.0f));
        sum = mix(sum, vectors(opaque(i)));
        for (const char *c = text(opaque(i % 12)); *c; c++)
            sum = mix(sum, (unsigned char)*c);
        /* The sum of the lanes is 224 + 8n; said twice so that the output does not depend on the processor. */
        sum = mix(sum, has_avx2 ? wide_vectors(opaque(i)) : 266 + 8 * i);
    }
    printf("%08x\n", sum);
    return 0;
}
