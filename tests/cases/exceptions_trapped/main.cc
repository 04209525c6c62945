/* Instructions that raise exceptions by themselves: a handler of their signals throws, which needs -fnon-call-exceptions. */
#include "case.h"
#include <csignal>
#include <cstdio>
#include <cstring>

struct Fault {
    int signal;
};
static void thrower(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    throw Fault{signal};
}

static unsigned sum;
struct Noted {
    unsigned what;
    ~Noted() { sum = mix(sum, what); }
};

NOINLINE unsigned loads(volatile unsigned *place, unsigned x) {
    Noted noted{x};
    unsigned a = opaque(x) * 3, b = a ^ 5, c = b + 7;
    try {
        a += *place;
        b += a;
        try {
            c += place[1] + b;
        } catch (int) {
            c = 1;
        }
    } catch (const Fault &fault) {
        return a + b + c + (fault.signal == SIGSEGV);
    }
    return a ^ b ^ c;
}
NOINLINE unsigned divides(unsigned a, volatile unsigned *by) {
    Noted noted{a};
    unsigned kept = opaque(a) + 100;
    try {
        return kept / *by;
    } catch (const Fault &fault) {
        return kept + (fault.signal == SIGFPE);
    }
}
NOINLINE unsigned stores(volatile unsigned *place, unsigned x) {
    unsigned done = 0;
    try {
        Noted noted{x};
        done = opaque(1);
        *place = x;
        done = opaque(2);
    } catch (...) {
        return done + 10;
    }
    return done;
}

int main() {
    struct sigaction action;
    std::memset(&action, 0, sizeof action);
    action.sa_handler = thrower;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGFPE, &action, nullptr);
    unsigned good[2] = {5, 6}, zero = 0, seven = 7;
    volatile unsigned *bad = reinterpret_cast<unsigned *>(opaque(16));
    for (unsigned i = 0; i < 4; i++) {
        unsigned first = loads(good, i);
        std::printf("%u %u ", first, loads(bad, i));
        first = divides(i, &seven);
        std::printf("%u %u ", first, divides(i, &zero));
        first = stores(good, 5);
        std::printf("%u %u ", first, stores(bad, i));
        std::printf("%08x\n", sum);
    }
}
