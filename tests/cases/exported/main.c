/* Functions found by name in the dynamic symbol table: same address as the pointer in the code, callable, and dladdr leads
   back from any instruction to the name. */
#define _GNU_SOURCE
#include "case.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef unsigned function(unsigned);
NOINLINE unsigned alpha(unsigned x) { return x + 1; }
NOINLINE unsigned beta(unsigned x) { return x % 2 ? alpha(x) * 3 : x / 2; }
NOINLINE unsigned gamma_ray(unsigned x) {
    switch (x % 6) {
    case 0: return alpha(x);
    case 1: return beta(x) + 1;
    case 2: return x * 9;
    case 3: return x ^ 0xdddd;
    case 4: return beta(alpha(x));
    default: return x - 1;
    }
}

int main(void) {
    static const struct { const char *name; function *address; } all[] = {
        {"alpha", alpha}, {"beta", beta}, {"gamma_ray", gamma_ray}};
    unsigned sum = 26;
    for (unsigned i = 0; i < 3; i++) {
        function *found = (function *)dlsym(NULL, all[i].name);
        Dl_info info = {0};
        dladdr((char *)(void *)all[i].address + opaque(1), &info);
        printf("%s %d %s %d\n", all[i].name, found == all[i].address, info.dli_sname, info.dli_saddr == (void *)found);
        for (unsigned j = 0; found && j < 60; j++)
            sum = mix(sum, found(sum));
    }
    printf("%d %08x\n", dlsym(NULL, "main") == (void *)main, sum);
    return 0;
}
