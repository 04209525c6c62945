/* GNU ld makes a plain number of `alias`, which is in no section: a symbol by which a library looks the function up, and whose value code has as a constant. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

__attribute__((noinline)) int meant(int x)
{
    if (x > 1000)
        puts("large");
    return x * 3 + 1;
}

extern int alias(int);

__attribute__((noinline)) int is_same(int (*a)(int), int (*b)(int))
{
    return a == b;
}

int main(int argc, char **argv)
{
    (void)argv;
    void *found = dlsym(RTLD_DEFAULT, "alias");
    printf("%d %d %d\n", is_same(meant, alias), is_same(meant, (int (*)(int))found), meant(29 + argc));
    return 0;
}
