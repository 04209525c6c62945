// Runs `main` of a shared object as a program would run its own: HOST OBJECT ARGUMENT…
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    (void)argc;
    void *object = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL | RTLD_DEEPBIND);
    int (*start)(int, char **) = object ? (int (*)(int, char **))dlsym(object, "main") : 0;
    if (!start) {
        fprintf(stderr, "%s\n", dlerror());
        return 99;
    }
    argv[1] = argv[0];
    return start(argc - 1, argv + 1);
}
