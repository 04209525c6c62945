// Walks through itself instruction by instruction, from in front of a call through a pointer into what is called, by the processor's trap
// flag. At every step a handler looks for the callers; `throw N` throws out of the handler, N steps in front of the callee. The
// handler's own calls are no steps: the flag is off in it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <signal.h>
#include <ucontext.h>
#include <unwind.h>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

struct Object {
    int (*member)(int);
};

static volatile sig_atomic_t inside, steps, lost;
static int throw_at = -1;
static _Unwind_Word known[16];
static int depth;

static _Unwind_Reason_Code take(_Unwind_Context *context, void *frames) {
    static_cast<std::vector<_Unwind_Word> *>(frames)->push_back(_Unwind_GetCFA(context));
    return _URC_NO_REASON;
}

// The frames from `main` on are the same whoever looks.
static std::vector<_Unwind_Word> frames() {
    std::vector<_Unwind_Word> all;
    _Unwind_Backtrace(take, &all);
    return all;
}

NOINLINE int callee(int n) {
    inside = 1;
    return n * 3;
}

static void handler(int, siginfo_t *, void *context) {
    auto &flags = static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_EFL];
    if (inside) {
        flags &= ~0x100;
        return;
    }
    std::vector<_Unwind_Word> all = frames();
    bool found = (int)all.size() > depth;
    for (int i = 1; found && i <= depth; i++)
        found = all[all.size() - i] == known[depth - i];
    lost += !found;
    if (steps++ == throw_at) {
        flags &= ~0x100;
        throw 5;
    }
}

static inline void walk() {
    if (throw_at != -2)
        __asm__ volatile("sub $128,%%rsp; pushfq; orq $0x100,(%%rsp); popfq; sub $-128,%%rsp" ::: "cc", "memory");
}

// A frame that is found by the stack pointer, with values of its own that are looked at afterwards.
NOINLINE int caught(int (*f)(int), int n) {
    volatile int own[6] = {n, n + 1, n + 2, n + 3, n + 4, n + 5};
    int result;
    try {
        walk();
        result = f(n);
    } catch (int thrown) {
        result = thrown;
    }
    return result + own[0] + own[1] + own[2] + own[3] + own[4] + own[5];
}

// The same through memory, and with arguments on the stack, which are taken off before a landing pad.
NOINLINE int caught_by_member(Object *o, int n) {
    volatile int own[6] = {n, n + 1, n + 2, n + 3, n + 4, n + 5};
    int result;
    try {
        walk();
        result = o->member(n);
    } catch (int thrown) {
        result = thrown;
    }
    return result + own[0] + own[1] + own[2] + own[3] + own[4] + own[5];
}

NOINLINE int jumps(int (*volatile *f)(int), int n) {
    walk();
    return (*f)(n);
}

int main(int count, char **arguments) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGTRAP, &action, nullptr);
    std::vector<_Unwind_Word> all = frames();
    // Behind `frames` comes `main`.
    depth = (int)all.size() - 1;
    for (int i = 0; i < depth; i++)
        known[i] = all[i + 1];
    int (*volatile f)(int) = callee;
    Object object = {callee};
    Object *volatile o = &object;
    auto each = [&](int way) {
        inside = steps = 0;
        return way == 0 ? caught(f, 7) : way == 1 ? caught_by_member(o, 7) : jumps(&f, 7);
    };
    for (int way = 0; way < 3; way++) {
        throw_at = -1;
        printf("%d ", each(way));
        int walked = steps;
        if (count > 2 && way < 2) {
            // The last step is the callee's first instruction.
            for (int back = 1; back <= atoi(arguments[2]); back++) {
                throw_at = walked - 1 - back;
                printf("%d ", each(way));
            }
        }
        if (walked < 1)
            puts("no steps");
    }
    printf("lost %d\n", (int)lost);
    return 0;
}
