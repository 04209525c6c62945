/* Functions that end in a call that does not return: nothing stands behind the call, so that the next function, or
   padding, follows it. The return address of such a call must still be unwound as part of the caller. */
#include "case.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static jmp_buf back;

__attribute__((noreturn)) NOINLINE void give_up(int code) {
    printf("leaving with %d\n", code);
    fflush(stdout);
    _exit(code);
}
__attribute__((noreturn)) NOINLINE void jump_back(int code) { longjmp(back, code); }
NOINLINE int checked(int x) {
    if (x < 0)
        give_up(3);
    if (x > 1000)
        jump_back(x);
    return x * 2;
}
NOINLINE int only_aborts(int x) {
    if (x != 5)
        return x;
    abort();
}
NOINLINE int only_traps(int x) {
    if (x == 77)
        __builtin_trap();
    return x + 1;
}
NOINLINE int unreachable_end(int x) {
    if (x == 1)
        return 10;
    if (x == 2)
        return 20;
    if (x == 3)
        exit(30);
    __builtin_unreachable();
}
int loops_by_table(int);

static void in_child(int (*f)(int), int x) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int result = f(x);
        printf("%d\n", result);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status))
        printf("exit %d\n", WEXITSTATUS(status));
    else
        printf("signal %d\n", WTERMSIG(status));
}

int main(void) {
    in_child(checked, 4);
    in_child(checked, -4);
    in_child(only_aborts, 4);
    in_child(only_aborts, 5);
    in_child(only_traps, 4);
    in_child(only_traps, 77);
    in_child(unreachable_end, 2);
    in_child(unreachable_end, 3);
    in_child(loops_by_table, 4);
    in_child(loops_by_table, -4);
    in_child(loops_by_table, 77);
    int code = setjmp(back);
    if (code == 0)
        checked(4321);
    printf("back with %d\n", code);
    exit(9);
}
