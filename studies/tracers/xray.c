/* Functions that XRay's runtime patches while the program runs, and unpatches again. */
#include <stdint.h>
#include <stdio.h>

#define PLAIN __attribute__((xray_never_instrument))

/* As xray_interface.h declares them, which is C++. */
int __xray_set_handler(void (*handler)(int32_t, int));
int __xray_patch(void);
int __xray_unpatch(void);
uintptr_t __xray_function_address(int32_t);

static volatile unsigned entered, left, seen[64];

PLAIN static void handler(int32_t id, int kind) {
    kind == 0 ? entered++ : left++;
    if (kind == 0 && id > 0 && id < 64)
        seen[id]++;
}

__attribute__((noinline)) unsigned leaf(unsigned x) {
    unsigned sum = x;
    for (unsigned i = 0; i < (x & 15); i++)
        sum = sum * 31 + i;
    return sum;
}
__attribute__((noinline)) unsigned choose(unsigned x) {
    switch (x % 7) {
    case 0: return leaf(x) + 1;
    case 1: return leaf(x) ^ 5;
    case 2: return x * 3;
    case 3: return leaf(x + 9);
    case 4: return x - 8;
    case 5: return ~x;
    default: return leaf(x) - leaf(x + 1);
    }
}

PLAIN int main(void) {
    unsigned sum = 0;
    __xray_set_handler(handler);
    int patched = __xray_patch();
    for (unsigned i = 0; i < 1000; i++)
        sum = sum * 7 + choose(i);
    int unpatched = __xray_unpatch();
    for (unsigned i = 0; i < 10; i++)
        sum = sum * 7 + choose(i);
    printf("%08x %d %d, entered %u, left %u\n", sum, patched, unpatched, entered, left);
    for (int id = 1; id < 64; id++) {
        uintptr_t address = __xray_function_address(id);
        const char *name = address == (uintptr_t)leaf ? "leaf" : address == (uintptr_t)choose ? "choose" : "another";
        if (seen[id])
            printf("%s %u\n", name, seen[id]);
    }
    return 0;
}
