/* Works in a thread, in a child and in itself, each in a function of its own, for as many tenths of a second as it is told. */
#include <pthread.h>
#include <stdlib.h>
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

int main(int count, char **arguments) {
    seconds = (count > 1 ? atoi(arguments[1]) : 5) / 10.0;
    if (fork() == 0)
        return in_child() == 0;
    unsigned result;
    pthread_t thread;
    pthread_create(&thread, 0, start, &result);
    unsigned own = in_itself();
    pthread_join(thread, 0);
    wait(0);
    return own + result == 0;
}
