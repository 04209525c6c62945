/* Traps that go on: a handler continues behind each, as breakpoint macros, sanitizers, runtimes and emulators do. */
#define _GNU_SOURCE
#include "case.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

unsigned in_the_middle(unsigned);
unsigned faults(unsigned, const unsigned *);
unsigned continued(unsigned);
unsigned leaves_out(unsigned, const unsigned *);
unsigned goes_elsewhere(unsigned, const unsigned *);
/* Where an access may fault, and where to go on then. */
extern const unsigned char *const fixes[2] __attribute__((visibility("hidden")));
unsigned data_behind(unsigned);
unsigned jumps_to_itself(unsigned);
unsigned leaves_behind(unsigned);
unsigned jumps_behind(unsigned);
unsigned runs_on(unsigned);
void shows_all(unsigned);
unsigned labels_behind(unsigned);

static unsigned seen, traps, data;

/* Bytes of the instruction at `at`; int3 is behind us already. */
static unsigned length(const unsigned char *at) {
    if (at[0] == 0xf4)
        return 1;
    if (at[0] == 0x8b)
        return at[1] == 0x04 ? 7 : 2;
    return at[1] == 0xb9 ? 3 : 2;
}

static void on_trap(int signal, siginfo_t *info, void *argument) {
    greg_t *registers = ((ucontext_t *)argument)->uc_mcontext.gregs;
    static const int shown[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
                                REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    const unsigned char *at = (const unsigned char *)registers[REG_RIP];
    (void)info;
    traps++;
    if (registers[REG_R15] == 0xffff && at[0] != 0x8b) {
        for (unsigned i = 0; i < sizeof shown / sizeof *shown; i++)
            seen = mix(seen, (unsigned)registers[shown[i]]);
        /* Status flags: carry, parity, auxiliary carry, zero, sign, overflow. */
        seen = mix(seen, (unsigned)registers[REG_EFL] & 0x8d5);
    }
    if (signal == SIGTRAP)
        return;
    if (at == fixes[0]) {
        registers[REG_RIP] = (greg_t)fixes[1];
        return;
    }
    registers[REG_RIP] += length(at);
    if (data) {
        unsigned value;
        memcpy(&value, at + 3, 4);
        seen = mix(mix(seen, at[2]), value);
        registers[REG_RIP] += data;
    }
}

/* A breakpoint macro, in straight code and on an unlikely path. */
#define BREAK_IF(x) do { if (__builtin_expect(x, 0)) __asm__ volatile("int3"); } while (0)

NOINLINE unsigned checks(unsigned x) {
    unsigned sum = x;
    for (unsigned i = 0; i < 5; i++) {
        BREAK_IF(sum % 7 == 3);
        sum = mix(sum, i);
        if (i == 2)
            __asm__ volatile("int3");
        BREAK_IF(sum % 5 == 1);
    }
    return sum;
}

/* Its variables stay below the stack pointer. */
NOINLINE unsigned leaf(unsigned x) {
    volatile unsigned room[8];
    for (unsigned i = 0; i < 8; i++)
        room[i] = x + i;
    if (x & 1)
        __asm__ volatile("int3" ::: "cc");
    return room[x % 8] * room[7];
}

/* The compiler puts a trap where it thinks that nothing comes. */
NOINLINE unsigned never(unsigned x) {
    if (x > 100)
        __builtin_trap();
    return x * 3;
}

int main(void) {
    struct sigaction action = {0};
    unsigned sum = 0, five = opaque(5);
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    for (unsigned i = 0; i < 16; i++)
        sum = mix(sum, in_the_middle(i));
    printf("%08x %u\n", sum, traps);
    for (unsigned i = 0; i < 6; i++)
        sum = mix(sum, faults(i, i & 1 ? &five : NULL));
    printf("%08x %u\n", sum, traps);
    for (unsigned i = 0; i < 6; i++)
        sum = mix(sum, leaves_out(i, i & 2 ? &five : NULL) * 3 + goes_elsewhere(i, i & 2 ? &five : NULL));
    printf("%08x %u\n", sum, traps);
    for (unsigned i = 0; i < 4; i++)
        sum = mix(sum, continued(i));
    printf("%08x %u\n", sum, traps);
    data = 5;
    for (unsigned i = 0; i < 4; i++)
        sum = mix(sum, data_behind(i));
    printf("%08x %08x %u\n", sum, seen, traps);
    for (unsigned i = 0; i < 3; i++) {
        sum = mix(sum, jumps_behind(i));
        sum = mix(sum, jumps_to_itself(i));
        sum = mix(sum, leaves_behind(i));
    }
    printf("%08x %08x %u\n", sum, seen, traps);
    data = 0;
    for (unsigned i = 0; i < 4; i++)
        sum = mix(sum, runs_on(i));
    printf("%08x %u\n", sum, traps);
    for (unsigned i = 0; i < 12; i++)
        shows_all(i);
    printf("%08x %u\n", seen, traps);
    for (unsigned i = 0; i < 20; i++)
        sum = mix(sum, checks(opaque(i)) + leaf(opaque(i)) + never(i));
    printf("%08x %u\n", sum, traps);
    printf("%u %u %u %u\n", labels_behind(0), labels_behind(1), labels_behind(2), labels_behind(3));
    return 0;
}
