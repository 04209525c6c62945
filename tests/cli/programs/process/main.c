// A program that works in itself and in the object that it is linked with, and in one that it opens by the name it is given.
#include <dlfcn.h>
#include <stdio.h>

int first(int n);

__attribute__((noinline)) static int own(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i % 7 ? i : -i;
    return sum;
}

int main(int argc, char **argv) {
    printf("%d %d\n", own(20000), first(20000));
    if (argc == 1)
        return 0;
    void *opened = dlopen(argv[1], RTLD_NOW);
    int (*second)(int) = opened ? (int (*)(int))dlsym(opened, "second") : 0;
    if (!second) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("%d\n", second(argc == 2 ? 20000 : 0));
    return 0;
}
