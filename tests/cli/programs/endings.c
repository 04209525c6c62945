/* Takes a thousand steps, then ends in the way that it is told. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long total;

__attribute__((noinline)) void step(unsigned long i) { total += i; }

__attribute__((noinline)) void walk(void) {
    for (unsigned long i = 0; i < 1000; i++)
        step(i);
}

int main(int argc, char **argv) {
    const char *ending = argc > 1 ? argv[1] : "return";
    if (!strcmp(ending, "children")) {
        for (int i = 0; i < 8; i++) {
            if (fork() == 0) {
                walk();
                _exit(0);
            }
        }
        while (wait(NULL) > 0)
            ;
        return 0;
    }
    walk();
    if (!strcmp(ending, "_exit"))
        _exit(7);
    if (!strcmp(ending, "abort"))
        abort();
    if (!strcmp(ending, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(ending, "wait")) {
        puts("walked");
        fflush(stdout);
        getchar();
    }
    printf("%lu\n", total);
    return 3;
}
