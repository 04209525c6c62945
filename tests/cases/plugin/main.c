/* A library loaded at run time that calls back into functions and variables which the program exports, and compares
   their addresses with what it was given. */
#include "case.h"
#include <dlfcn.h>
#include <stdio.h>

unsigned exported_count = 3;
NOINLINE unsigned exported_step(unsigned x) { return x * 5 + exported_count++; }
NOINLINE unsigned never_named(unsigned x) { return x ^ 0x99; }
typedef unsigned function(unsigned);
typedef unsigned entry(unsigned, function *, function *);

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    entry *run = (entry *)dlsym(library, "run");
    unsigned sum = 25;
    for (unsigned i = 0; i < 100; i++)
        sum = mix(sum, run(sum, exported_step, never_named));
    function *found = (function *)dlsym(NULL, "exported_step");
    printf("%d %u %08x\n", found == exported_step, exported_count, sum);
    return 0;
}
