/* Takes a thousand steps, leaves the surroundings that it was started in, as servers do, and takes a thousand more. */
#define _GNU_SOURCE
#include <fcntl.h>
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

/* 9: this may not be done here. */
static void may(int result) {
    if (result != 0)
        _exit(9);
}

static void leave(const char *way, char **argv) {
    if (!strcmp(way, "root")) {
        may(chroot("."));
        may(chdir("/"));
    }
    if (!strcmp(way, "user")) {
        may(setgid(65534));
        may(setuid(65534));
    }
    if (!strcmp(way, "descriptors"))
        for (int i = 0; i < 1024; i++)
            close(i);
    if (!strcmp(way, "daemon")) {
        int pipes[2];
        may(pipe(pipes));
        if (fork() != 0) {
            /* Waits until the last process has ended, though it is no child. */
            char end;
            close(pipes[1]);
            _exit(read(pipes[0], &end, 1) == 0 ? 3 : 1);
        }
        setsid();
        if (fork() != 0)
            _exit(0);
        may(chdir("/"));
        int null = open("/dev/null", O_RDWR);
        for (int i = 0; i < 3; i++)
            dup2(null, i);
    }
    if (!strcmp(way, "image")) {
        char *again[] = {argv[0], "nowhere", NULL}, *nothing[] = {NULL};
        execve("/proc/self/exe", again, nothing);
        _exit(1);
    }
    if (!strcmp(way, "phases")) {
        puts("first");
        fflush(stdout);
        getchar();
    }
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "nowhere";
    if (strcmp(way, "nowhere"))
        walk();
    leave(way, argv);
    walk();
    if (!strcmp(way, "phases")) {
        puts("second");
        fflush(stdout);
        getchar();
    }
    return 3;
}
