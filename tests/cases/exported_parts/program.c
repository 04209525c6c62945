/* Exported functions whose blocks stand apart. backtrace_symbols names the caller from any of them, and functions that are not exported from none, whomever
   they stand in; dlsym, dlvsym and a library that binds to them find the function itself, whatever versions there are. */
#define _GNU_SOURCE
#include "case.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned function(unsigned);

static unsigned traces;

/* Prints the names of this many callers; which of two names of one function, the linker decides. */
NOINLINE void callers(unsigned levels) {
    void *frames[16];
    int n = backtrace(frames, 16);
    char **names = backtrace_symbols(frames, n);
    for (int i = 1; i <= (int)levels && i < n; i++) {
        char *name = strchr(names[i], '(') + 1;
        fprintf(stderr, i == 1 ? "%.*s" : " < %.*s", (int)strcspn(name, "+)"), name);
    }
    fprintf(stderr, "\n");
    free(names);
    traces++;
}

static NOINLINE unsigned nameless(unsigned x) {
    if (x % 3 == 1)
        callers(3);
    return x * 5 + opaque(2);
}

static NOINLINE unsigned nameless_too(unsigned x) {
    x += nameless(x + 1);
    if (x % 2)
        callers(2);
    return x ^ 9;
}

NOINLINE unsigned branches(unsigned x) {
    x += nameless(x) % 8;
    if (x % 2) {
        callers(2);
        x += nameless_too(x) % 4;
        x = x * 3 + 1;
    } else if (x % 3) {
        x += 7;
        callers(2);
    }
    while (x > 50) {
        x = x / 2 + opaque(1);
        if (x % 5 == 0)
            callers(3);
    }
    return x;
}

NOINLINE unsigned cases(unsigned x) {
    switch (x % 8) {
    case 0: callers(1); return x + branches(x);
    case 1: callers(2); return x * 2;
    case 2: x ^= branches(x + 9); x += nameless_too(x); callers(1); break;
    case 3: callers(1); callers(2); return 5;
    case 4: x += opaque(3); break;
    case 5: x -= 4; callers(2); break;
    case 6: return branches(x) - 1;
    default: return x;
    }
    callers(2);
    return x;
}

#if VERSIONS
__asm__(".symver step_old, step@OLD");
__asm__(".symver step_middle, step@MIDDLE");
__asm__(".symver step_new, step@@NEW");
#define step step_new
#else
#define step_old step
#define step_middle step
#define step_new step
#endif
#if VERSIONS
NOINLINE unsigned step_old(unsigned x) {
    return x % 2 ? x + opaque(5) : x % 3 ? branches(x) : x * 6;
}
NOINLINE unsigned step_middle(unsigned x) {
    return x % 2 ? opaque(x) + 5 : x % 3 ? branches(x) : x * 6;
}
#endif
NOINLINE unsigned step_new(unsigned x) {
    return x % 2 ? x + 5 : x % 3 ? branches(x) : x * 6;
}

/* Two names of one function. */
unsigned second_name(unsigned x) __attribute__((alias("first_name")));
NOINLINE unsigned first_name(unsigned x) {
    if (x % 2)
        callers(1);
    if (x % 4 == 0)
        x = branches(x);
    x += nameless(x) % 16;
    callers(1);
    return x % 3 ? x + 1 : x - 1;
}

__attribute__((weak)) NOINLINE unsigned may_be_replaced(unsigned x) {
    if (x % 2)
        callers(1);
    return x % 3 ? branches(x) : x;
}

NOINLINE unsigned found(const char *name, function *expected) {
    void *by_name = dlsym(NULL, name), *by_default = dlsym(RTLD_DEFAULT, name);
    Dl_info info = {0};
    int known = dladdr((void *)expected, &info) && info.dli_saddr == (void *)expected;
    printf("%s %d %d %d\n", name, by_name == (void *)expected, by_default == (void *)expected, known);
    return by_name ? ((function *)by_name)(6) : 0;
}

int main(int argc, char **argv) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 20; i++)
        sum = mix(sum, cases(i) + step(i) + first_name(i) + second_name(i + 1) + may_be_replaced(i));
    static const struct { const char *name; function *address; } all[] = {
        {"branches", branches}, {"cases", cases}, {"step", step}, {"first_name", first_name},
        {"second_name", second_name}, {"may_be_replaced", may_be_replaced}, {"main", (function *)(void *)main}};
    for (unsigned i = 0; i < 6; i++)
        sum = mix(sum, found(all[i].name, all[i].address));
#if VERSIONS
    int right = dlvsym(NULL, "step", "OLD") == (void *)step_old && dlvsym(NULL, "step", "MIDDLE") == (void *)step_middle
        && dlvsym(NULL, "step", "NEW") == (void *)step_new && dlvsym(NULL, "branches", "NEW") == (void *)branches
        && !dlvsym(NULL, "branches", "OLD");
#else
    int right = 0;
#endif
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
    function *run = library ? (function *)dlsym(library, "run") : NULL;
    if (!run) {
        printf("%s\n", dlerror());
        return 1;
    }
    function *const *bound = (function *const *)dlsym(library, "bound");
    for (unsigned i = 0; i < 6; i++)
        right += bound[i] == all[i].address;
    sum = mix(sum, run(21));
    printf("%u %d %08x\n", traces, right, sum);
    return 0;
}
