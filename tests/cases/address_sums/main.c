/* Functions' addresses with constants added: tags above the address, distances that end in a neighbour, in data and in code;
   and elements before an array's first, whose addresses fall into the code. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
#define TAG(n) ((uintptr_t)(n) << 48)
#define ADDRESS(word) ((function *)((word) & (TAG(1) - 1)))

NOINLINE unsigned near(unsigned x) { return x * 3 + 1; }
static NOINLINE unsigned local(unsigned x) { return x * 5 + 2; }
NOINLINE unsigned other(unsigned x) { return x * 7 + 3; }
static NOINLINE unsigned another(unsigned x) { return x * 9 + 4; }

static const uintptr_t tagged[] = {(uintptr_t)near + TAG(1), (uintptr_t)local + TAG(2), (uintptr_t)other + TAG(0xffff),
                                   (uintptr_t)another - TAG(1)};
uintptr_t distant[] = {(uintptr_t)((char *)near + 64), (uintptr_t)((char *)other - 1), (uintptr_t)((char *)near + 0x20000)};

/* So far in front of a function stand headers, the interpreter's name, notes. */
__asm__(".section .data.rel.ro, \"aw\"\n.p2align 3\nfront:\n.set i, 0\n"
        ".rept 896\n.quad near - 0x900 - i\n.set i, i + 8\n.endr\n.text");
extern const uintptr_t front[896];
NOINLINE unsigned all_in_front(function *from) {
    unsigned count = 0;
    for (unsigned i = 0; i < 896; i++)
        count += front[i] + 0x900 + i * 8 == (uintptr_t)from;
    return count;
}

unsigned table[8192];
#define TIMES8(m, n) m(n) m(n + 64) m(n + 128) m(n + 192) m(n + 256) m(n + 320) m(n + 384) m(n + 448)
#define EVERY(m) TIMES8(m, 1024) TIMES8(m, 1536) TIMES8(m, 2048) TIMES8(m, 2560) TIMES8(m, 3072) TIMES8(m, 3584)
/* As a compiler writes it for fixed addresses, and as code that does not depend on its address may. */
#define READ(n) sum = mix(sum, table[i - (n)]);
#define READ_RELATIVE(n) \
    __asm__("lea table-4*(" #n ")(%%rip), %0" : "=r"(from)); \
    sum = mix(sum, from[i]);
NOINLINE unsigned before(long i) {
    unsigned sum = 0;
    EVERY(READ)
    return sum;
}
NOINLINE unsigned before_relative(long i) {
    unsigned sum = 0;
    const unsigned *from;
    EVERY(READ_RELATIVE)
    return sum;
}

NOINLINE uintptr_t tag(void) { return (uintptr_t)near + TAG(4); }
NOINLINE uintptr_t behind(void) { return (uintptr_t)near + 64; }

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 4; i++)
        sum = mix(sum, ADDRESS(tagged[opaque(i)])(i));
    sum = mix(sum, ADDRESS(tag())(5));
    function *volatile functions[] = {near, local, other, another};
    printf("%d", ADDRESS(tag()) == functions[0]);
    for (unsigned i = 0; i < 4; i++)
        printf(" %d", ADDRESS(tagged[opaque(i)]) == functions[i]);
    printf(" %d %d %d %d\n", behind() - 64 == (uintptr_t)functions[0], distant[opaque(0)] == behind(),
           distant[opaque(1)] + 1 == (uintptr_t)functions[2], distant[opaque(2)] - 0x20000 == (uintptr_t)functions[0]);
    printf("%u\n", all_in_front(functions[0]));
    for (unsigned i = 0; i < 8192; i++)
        table[i] = i * i;
    printf("%08x %08x %d\n", sum, before(4500), before(5000) == before_relative(5000));
    return 0;
}
