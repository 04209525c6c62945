/* Functions that take their return address off the stack: vfork puts it back, and its callers move. Others hand it out, and
   their callers find data by it. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t own_vfork(void) __attribute__((returns_twice));
unsigned asks(unsigned which);

static int status_of(pid_t child) {
    int status = -1;
    if (waitpid(child, &status, 0) != child)
        abort();
    return WEXITSTATUS(status);
}

__attribute__((noinline)) static void by_libc(int code) {
    pid_t child = vfork();
    if (child == 0)
        _exit(code);
    printf("child %d %d\n", status_of(child), child < 0);
}

__attribute__((noinline)) static void by_hand(int code) {
    pid_t child = own_vfork();
    if (child == 0)
        _exit(code);
    printf("child %d %d\n", status_of(child), child < 0);
}

int main(void) {
    by_libc((int)opaque(3));
    by_hand((int)opaque(9));
    printf("%08x\n", asks(opaque(0)));
    printf("%08x\n", asks(opaque(1)));
    return 0;
}
