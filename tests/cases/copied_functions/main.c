/* Functions' addresses as numbers: a distance to copy by, an order, a tag, the bytes that stand there. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__clang__)
#define IN_ORDER NOINLINE
#else
#define IN_ORDER NOINLINE __attribute__((no_reorder))
#endif
typedef unsigned function(unsigned);

IN_ORDER unsigned leaf(unsigned x) {
    unsigned sum = 1;
    for (unsigned i = 0; i < x % 7; i++) {
        sum = (sum * 3) ^ i;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum > 100 ? sum - x : sum + x;
}
IN_ORDER unsigned between(unsigned x) { return x % 5 ? x ^ 3 : x + 4; }
IN_ORDER unsigned behind(unsigned x) { return x ^ 3; }
IN_ORDER unsigned lower(unsigned x) { return x * 3; }
IN_ORDER unsigned upper(unsigned x) { return x * 5; }
__attribute__((aligned(16))) IN_ORDER unsigned tagged(unsigned x) { return x * 7; }
IN_ORDER unsigned unrelated(unsigned x) { return x % 3 ? x * 9 : x + 1; }

NOINLINE size_t size_of_leaf(void) { return (size_t)((const char *)behind - (const char *)leaf); }
NOINLINE int in_order(void) { return (uintptr_t)lower < (uintptr_t)upper; }
NOINLINE uintptr_t with_tag(void) { return (uintptr_t)tagged | 4; }

int main(void) {
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, (const void *)leaf, size_of_leaf());
    unsigned sum = 0;
    for (unsigned i = 0; i < 20; i++)
        sum = mix(sum, ((function *)page)(i) ^ leaf(i) ^ unrelated(i) ^ between(i) ^ behind(i));
    printf("%08x %d %u %u\n", sum, in_order(), lower(3) + upper(4), ((function *)(with_tag() & ~(uintptr_t)4))(5));
    return 0;
}
