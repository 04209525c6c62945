/* Takes a thousand steps, then ends in the way that it is told; or changes itself first, as servers do. */
#define _GNU_SOURCE
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

/* What needs a right that the user lacks ends it with 77. */
static void change(const char *how, char **argv) {
    if (!strcmp(how, "root") && (chroot("/proc") || chdir("/")))
        exit(77);
    if (!strcmp(how, "user") && (setgid(65534) || setuid(65534)))
        exit(77);
    if (!strcmp(how, "closed"))
        for (int descriptor = 3; descriptor < 1024; descriptor++)
            close(descriptor);
    if (!strcmp(how, "again")) {
        walk();
        execl(argv[0], argv[0], "return", (char *)0);
        exit(78);
    }
    if (!strcmp(how, "daemon")) {
        if (fork() > 0)
            _exit(3);
        setsid();
        if (fork() > 0)
            _exit(0);
    }
}

int main(int argc, char **argv) {
    const char *ending = argc > 1 ? argv[1] : "return";
    change(ending, argv);
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
