// Calls through pointers, as often as is printed: `SITE TARGET COUNT` a line, for each way of calling and what it leads to. The argument says
// who calls: `alone`, several threads at once, children, the program started anew, or a handler of signals while others call.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

typedef long (*operation)(long, long);
struct object {
    operation methods[4];
};

NOINLINE static long add(long a, long b) { return a + b; }
NOINLINE static long subtract(long a, long b) { return a - b; }
NOINLINE static long multiply(long a, long b) { return a * b; }
NOINLINE static long combine(long a, long b) { return a ^ b; }
static const char *const names[] = {"add", "subtract", "multiply", "combine"};
static struct object object = {{add, subtract, multiply, combine}};
operation global = multiply;

// Each calls in another way: through a register, a member, a table, a word of its own; with arguments on the stack; and by jumps.
NOINLINE long by_register(operation f, long a) { return f(a, 1) + 1; }
NOINLINE long by_member(struct object *o, int i, long a) { return o->methods[i](a, 2) + 2; }
NOINLINE long by_table(int i, long a) { return object.methods[i](a, 3) + 3; }
NOINLINE long by_word(long a) { return global(a, 4) + 4; }
NOINLINE long by_jump(operation f, long a) { return f(a, 5); }
NOINLINE long by_member_jump(struct object *o, int i, long a) { return o->methods[i](a, 6); }

enum { SITES = 6, TURNS = 30000 };
static const char *const sites[SITES] = {"by_register", "by_member", "by_table", "by_word", "by_jump", "by_member_jump"};
static unsigned long counts[SITES][4];
static volatile long sum;

static void turn(unsigned long i, unsigned long (*mine)[4]) {
    unsigned which = i * 7 % 10;
    which = which < 6 ? 0 : which - 6;
    long s = by_register(object.methods[which], i);
    s += by_member(&object, which, i);
    s += by_table(which, i);
    s += by_word(i);
    s += by_jump(object.methods[which], i);
    s += by_member_jump(&object, which, i);
    sum = s;
    for (int site = 0; site < SITES; site++)
        mine[site][site == 3 ? 2 : which]++;
}

static void turns(unsigned long (*mine)[4]) {
    for (unsigned long i = 0; i < TURNS; i++)
        turn(i, mine);
}

static void add_up(unsigned long (*mine)[4]) {
    for (int site = 0; site < SITES; site++)
        for (int target = 0; target < 4; target++)
            counts[site][target] += mine[site][target];
}

static void *thread(void *mine) {
    turns(mine);
    return 0;
}

static void in_threads(void) {
    static unsigned long mine[4][SITES][4];
    pthread_t ids[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&ids[i], 0, thread, mine[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], 0);
        add_up(mine[i]);
    }
}

// Every second child is killed when it has called.
static void in_children(void) {
    for (int i = 0; i < 4; i++) {
        int ends[2];
        unsigned long mine[SITES][4] = {{0}};
        if (pipe(ends))
            exit(1);
        if (fork() == 0) {
            turns(mine);
            if (write(ends[1], mine, sizeof mine) != sizeof mine)
                exit(1);
            if (i % 2)
                kill(getpid(), SIGKILL);
            _exit(0);
        }
        if (read(ends[0], mine, sizeof mine) != sizeof mine)
            exit(1);
        wait(0);
        add_up(mine);
    }
}

static unsigned long in_handler[SITES][4];
static void handler(int number) {
    static unsigned long i;
    (void)number;
    turn(i++, in_handler);
}

static void among_signals(void) {
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    unsigned long mine[SITES][4] = {{0}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, 0);
    for (int i = 0; i < 10; i++)
        turns(mine);
    setitimer(ITIMER_REAL, &never, 0);
    add_up(mine);
    add_up(in_handler);
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "alone";
    unsigned long mine[SITES][4] = {{0}};
    if (!strcmp(how, "threads"))
        in_threads();
    else if (!strcmp(how, "children"))
        in_children();
    else if (!strcmp(how, "signals"))
        among_signals();
    else
        turns(mine);
    add_up(mine);
    for (int site = 0; site < SITES; site++)
        for (int target = 0; target < 4; target++)
            if (counts[site][target])
                printf("%s %s %lu\n", sites[site], names[target], counts[site][target]);
    fflush(stdout);
    if (!strcmp(how, "again")) {
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        execl("/proc/self/exe", arguments[0], "alone", (char *)0);
        return 1;
    }
    return 0;
}
