// Uses the shared object; if asked for, with a function of its own in place of one of the object's.
#include <dlfcn.h>
#include <stdio.h>

int work(int n);
int preempted(int x);
extern int exported_data;

#ifdef WITH_OWN
int preempted(int x) { return x + 1000; }
#endif

int main(int argc, char **argv) {
    printf("%d\n", work(1000));
    exported_data = 9;
    printf("%d %d\n", work(100), preempted(4));
    // The same file once more, under another name, loaded and unloaded again and again.
    for (int i = 0; i < 3 && argc > 1; i++) {
        void *again = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*other)(int) = again ? (int (*)(int))dlsym(again, "work") : 0;
        printf("%d\n", other ? other(10) : -1);
        if (again)
            dlclose(again);
    }
    return 0;
}
