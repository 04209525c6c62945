/* setjmp and longjmp, also into a function that the compiler split, out of several frames and from a signal handler. */
#include "case.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static jmp_buf env;
static sigjmp_buf signal_env;
static volatile unsigned events;

__attribute__((cold)) NOINLINE void fail(int code) { events = mix(events, (unsigned)code); longjmp(env, code); }
NOINLINE unsigned parse(unsigned n, unsigned depth) {
    if (__builtin_expect(n % 17 == 13, 0))
        fail((int)(n % 17));
    if (depth == 0)
        return n * 3;
    return parse(n + 1, depth - 1) ^ depth;
}
NOINLINE unsigned guarded(unsigned n) {
    volatile unsigned result = 1;
    int code = setjmp(env);
    if (code == 0) {
        result = parse(n, n % 6);
    } else if (__builtin_expect(code > 100, 0)) {
        fail(1);
    } else {
        events++;
        result += (unsigned)code;
    }
    return result;
}
static void on_signal(int signal) { siglongjmp(signal_env, signal); }
NOINLINE unsigned signalled(unsigned n) {
    int code = sigsetjmp(signal_env, 1);
    if (code)
        return (unsigned)code + n;
    raise(SIGUSR1);
    return 0;
}

int main(void) {
    volatile unsigned sum = 22;
    signal(SIGUSR1, on_signal);
    for (volatile unsigned i = 0; i < 300; i++) {
        sum = mix(sum, guarded(i));
        if (i % 10 == 0)
            sum = mix(sum, signalled(i));
    }
    printf("%08x %08x\n", sum, events);
    return 0;
}
