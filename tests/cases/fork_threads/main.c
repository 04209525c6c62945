/* Threads that fork and children that thread, some of which end by _exit and by a signal: every copy of the program runs the same
   code, and an instrumented one counts all of them into one file. Threads take turns: counters are not atomic, so those of
   threads that run at the same moment lose some, and the plan could not say how often work was called. */
#include "case.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

NOINLINE unsigned work(unsigned n) { return mix(n, n * 17); }
NOINLINE unsigned repeat(unsigned n) {
    unsigned sum = n;
    for (unsigned i = 0; i < 1000; i++)
        sum = work(sum);
    return sum;
}
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static void *thread(void *argument) {
    unsigned *value = argument;
    pthread_mutex_lock(&turn);
    *value = repeat(*value);
    pthread_mutex_unlock(&turn);
    return NULL;
}
NOINLINE unsigned in_threads(unsigned seed) {
    pthread_t ids[3];
    unsigned values[3], sum = 0;
    for (unsigned i = 0; i < 3; i++) {
        values[i] = seed + i;
        pthread_create(&ids[i], NULL, thread, &values[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(ids[i], NULL);
        sum = mix(sum, values[i]);
    }
    return sum;
}

int main(void) {
    unsigned sum = 0;
    for (unsigned child = 0; child < 4; child++) {
        int ends[2], status = 0;
        unsigned result = 0;
        if (pipe(ends))
            return 1;
        pid_t id = fork();
        if (id == 0) {
            result = in_threads(child);
            if (write(ends[1], &result, sizeof result) != sizeof result)
                _exit(1);
            if (child == 1)
                kill(getpid(), SIGKILL);
            _exit((int)child);
        }
        if (read(ends[0], &result, sizeof result) != sizeof result)
            return 2;
        waitpid(id, &status, 0);
        printf("%u %d %08x\n", child, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), result);
        sum = mix(sum, result);
    }
    printf("%08x\n", mix(sum, in_threads(99)));
    return 0;
}
