/* Signals whose handler knows the instruction by its address, as virtual machines, emulators and checkers do: a trap from a table, an access at a
   function's entry, and a call through a pointer that is not there, which the handler leaves out. */
#define _GNU_SOURCE
#include "case.h"
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

unsigned safe_load(const unsigned *);
unsigned safe_load_failed(void);
unsigned safe_add(unsigned, const unsigned *);
unsigned safe_add_failed(unsigned, const unsigned *);

struct operations {
    const void *name;
    unsigned (*apply)(unsigned);
};

unsigned may_call(const struct operations *, unsigned);

/* Traps by their addresses. */
extern const uintptr_t __start_held_traps[] __attribute__((visibility("hidden")));
extern const uintptr_t __stop_held_traps[] __attribute__((visibility("hidden")));
/* Where an access or a call may fault, and where to go on then. */
extern const uintptr_t held_calls[2] __attribute__((visibility("hidden")));
static unsigned (*const held_entries[2])(unsigned, const unsigned *) = {safe_add, safe_add_failed};

static unsigned seen, left_out;

/* Bytes of an instruction with one operand in memory, and no constant. */
static unsigned length(const unsigned char *at) {
    unsigned size = (at[0] & 0xf0) == 0x40;
    unsigned char operand = at[size + 1];
    unsigned has_index = operand >> 6 != 3 && (operand & 7) == 4;
    return size + 2 + has_index + (operand >> 6 == 1 ? 1 : operand >> 6 == 2 ? 4 : 0);
}

static void on_signal(int signal, siginfo_t *info, void *argument) {
    greg_t *ip = &((ucontext_t *)argument)->uc_mcontext.gregs[REG_RIP];
    uintptr_t at = (uintptr_t)*ip - (signal == SIGTRAP);
    (void)info;
    for (const uintptr_t *trap = __start_held_traps; trap < __stop_held_traps; trap++)
        if (*trap == at) {
            seen++;
            *ip += signal == SIGILL ? 2 : 0;
            return;
        }
    if (signal != SIGSEGV) {
        static const char unknown[] = "a trap that nobody knows\n";
        (void)!write(2, unknown, sizeof unknown - 1);
        _exit(98);
    }
    if (at == (uintptr_t)safe_load)
        *ip = (greg_t)safe_load_failed;
    else if (at == (uintptr_t)held_entries[0])
        *ip = (greg_t)held_entries[1];
    else if (at == held_calls[0])
        *ip = (greg_t)held_calls[1];
    else {
        /* Nothing else is read that is not there. */
        *ip += length((const unsigned char *)at);
        left_out++;
    }
}

#define HELD(x, trap)                                                                                                 \
    do {                                                                                                              \
        if (__builtin_expect(!!(x), 0))                                                                               \
            __asm__ volatile("held%=: " trap "\n.pushsection held_traps, \"aw\"\n.quad held%=\n.popsection" ::        \
                                 : "memory");                                                                         \
    } while (0)

NOINLINE unsigned breaks(unsigned x) {
    HELD(x % 16 == 5, "int3");
    return x ^ 9;
}

NOINLINE unsigned is_wrong(unsigned x) {
    HELD(x % 16 == 3, "ud2");
    return x ^ 5;
}

NOINLINE static unsigned seven_more(unsigned x) { return x + 7; }

/* What it keeps on the stack is found behind the call by the stack pointer. */
NOINLINE unsigned calls(const struct operations *operations, unsigned x) {
    unsigned answer = operations->apply(x);
    return answer * 3 + x;
}

NOINLINE unsigned scan(const unsigned *const *places, unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum = mix(sum, safe_load(places[i]) + safe_add(i, places[i]));
    return sum;
}

int main(void) {
    static const unsigned values[8] = {1, 4, 9, 16, 25, 36, 49, 64};
    static const unsigned *places[8];
    static const struct operations known = {"", seven_more};
    const struct operations *none = (const struct operations *)(uintptr_t)opaque(0);
    unsigned sum = 0;
    struct sigaction action = {0};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    for (unsigned i = 0; i < 100; i++)
        sum = mix(sum, breaks(opaque(i)) + is_wrong(opaque(i)));
    printf("%08x %u\n", sum, seen);
    for (unsigned i = 0; i < 8; i++)
        places[i] = i % 3 == 2 ? NULL : &values[i];
    for (unsigned i = 0; i < 40; i++)
        sum = mix(sum, scan(places, 8));
    printf("%08x\n", sum);
    for (unsigned i = 0; i < 30; i++)
        sum = mix(sum, may_call(i % 7 == 4 ? none : &known, i));
    printf("%08x %u\n", sum, left_out);
    for (unsigned i = 0; i < 30; i++)
        if (i % 10 == 3)
            (void)calls(none, i);
        else
            sum = mix(sum, calls(&known, i));
    printf("%08x %u\n", sum, left_out > 0);
    return 0;
}
