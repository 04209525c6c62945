/* Works in a thread, in a child and in itself, each in a function of its own, for as many tenths of a second as it is told. As it may be told besides, it
 * first closes all descriptors, starts itself anew, or becomes another user with another root directory; or ends by a signal. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

#define WORK(name, step) \
    __attribute__((noinline)) static unsigned name(void) { \
        unsigned sum = 1; \
        for (double end = now() + seconds; now() < end;) \
            for (int i = 0; i < 100000; i++) \
                sum = sum * 69069 + step; \
        return sum; \
    }

WORK(in_thread, 1)
WORK(in_child, 3)
WORK(in_itself, 5)

static void *start(void *result) {
    *(unsigned *)result = in_thread();
    return 0;
}

static void change(const char *how, char **arguments) {
    if (!strcmp(how, "closed"))
        for (int descriptor = 0; descriptor < 1024; descriptor++)
            close(descriptor);
    if (!strcmp(how, "again")) {
        execl(arguments[0], arguments[0], arguments[1], (char *)0);
        exit(78);
    }
    if (!strcmp(how, "other") && (chroot("/proc") || chdir("/") || setgid(65534) || setuid(65534)))
        exit(77);
}

int main(int count, char **arguments) {
    const char *how = count > 2 ? arguments[2] : "";
    change(how, arguments);
    seconds = (count > 1 ? atoi(arguments[1]) : 5) / 10.0;
    if (fork() == 0)
        return in_child() == 0;
    unsigned result;
    pthread_t thread;
    pthread_create(&thread, 0, start, &result);
    unsigned own = in_itself();
    pthread_join(thread, 0);
    wait(0);
    if (!strcmp(how, "killed"))
        kill(getpid(), SIGKILL);
    return own + result == 0;
}
