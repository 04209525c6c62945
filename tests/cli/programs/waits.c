// Waits in the kernel in several ways, each of which a stop by a debugger may end early (signal(7)), and says which of them one did. With an argument, an
// alarm's handler ends the waits, and has to.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int alarms;
static volatile unsigned work;
static int events, channel[2], semaphores;

static void on_alarm(int number) { alarms++; }

static int by_epoll(void) { struct epoll_event event; return epoll_wait(events, &event, 1, 3); }
static int by_poll(void) { struct pollfd file = {channel[0], POLLIN, 0}; return poll(&file, 1, 3); }
static int by_select(void) { fd_set set; struct timeval time = {0, 3000}; FD_ZERO(&set); FD_SET(channel[0], &set); return select(channel[0] + 1, &set, 0, 0, &time); }
static int by_sleep(void) { struct timespec time = {0, 3000000}; return nanosleep(&time, 0); }
static int by_semaphore(void) { struct sembuf down = {0, -1, 0}; struct timespec time = {0, 3000000}; return semtimedop(semaphores, &down, 1, &time); }

int main(int argc, char **argv) {
    int (*waits[])(void) = {by_epoll, by_poll, by_select, by_sleep, by_semaphore};
    const char *names[] = {"epoll_wait", "poll", "select", "nanosleep", "semtimedop"};
    int interrupted[5] = {0}, rounds = argc > 1 ? 40 : 60;
    events = epoll_create1(0);
    pipe(channel);
    struct epoll_event event = {EPOLLIN, {0}};
    epoll_ctl(events, EPOLL_CTL_ADD, channel[0], &event);
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    if (argc > 1) {
        struct sigaction action = {.sa_handler = on_alarm};
        struct itimerval often = {{0, 1000}, {0, 1000}};
        sigaction(SIGALRM, &action, 0);
        setitimer(ITIMER_REAL, &often, 0);
    }
    for (int i = 0; i < rounds; i++)
        for (int way = 0; way < 5; way++) {
            for (int j = 0; j < 300000; j++) work += j;
            errno = 0;
            if (waits[way]() < 0 && errno == EINTR) interrupted[way]++;
        }
    semctl(semaphores, 0, IPC_RMID);
    for (int way = 0; way < 5; way++) printf("%s %s\n", names[way], interrupted[way] == 0 ? "whole" : interrupted[way] > rounds / 2 ? "ended" : "odd");
    return 0;
}
