/* A tracer in the program: it writes calls over the nops that the compiler has left at each function's entry, and listed. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifdef MCOUNT
#define LISTED(bound) NAMED(bound, MCOUNT)
#define NAMED(bound, section) JOINED(bound, section)
#define JOINED(bound, section) __##bound##_##section
#define PLAIN __attribute__((noinline, no_instrument_function))
#else
#define LISTED(bound) __##bound##___patchable_function_entries
#define PLAIN __attribute__((noinline, patchable_function_entry(0, 0)))
#endif
/* Of the nops in front of each entry. */
#ifndef BEFORE
#define BEFORE 0
#endif

extern uintptr_t LISTED(start)[], LISTED(stop)[];
static volatile unsigned calls;

PLAIN __attribute__((used)) void tracer(void) { calls++; }

void trampoline(void);
__asm__(".text\n"
        ".globl trampoline\n"
        ".type trampoline,@function\n"
        "trampoline:\n"
        ".cfi_startproc\n"
        "    push %rax; push %rcx; push %rdx; push %rsi; push %rdi; push %r8; push %r9; push %r10; push %r11; pushfq\n"
        "    push %rbp; mov %rsp,%rbp; and $-16,%rsp\n"
        "    call tracer\n"
        "    mov %rbp,%rsp; pop %rbp\n"
        "    popfq; pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rax\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size trampoline,.-trampoline\n");

PLAIN static int patch(void) {
    static const uint8_t one[] = {0x90, 0x90, 0x90, 0x90, 0x90}, five[] = {0x0f, 0x1f, 0x44, 0x00};
    int patched = 0;
    for (uintptr_t *place = LISTED(start); place < LISTED(stop); place++) {
        uint8_t *at = (uint8_t *)*place + BEFORE;
        if (!memcmp(at, "\xf3\x0f\x1e\xfa", 4))
            at += 4;
        if (memcmp(at, one, sizeof one) && memcmp(at, five, sizeof five)) {
            puts("there are no nops");
            continue;
        }
        mprotect((void *)((uintptr_t)at & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
        int32_t distance = (int32_t)((uintptr_t)trampoline - ((uintptr_t)at + 5));
        *at = 0xe8;
        memcpy(at + 1, &distance, 4);
        patched++;
    }
    return patched;
}

/* Nothing but the nops stands in front of the loop. */
NOINLINE unsigned spin(volatile unsigned *count) {
    do {
    } while (--*count);
    return *count;
}
NOINLINE unsigned leaf(unsigned x) {
    unsigned sum = x;
    for (unsigned i = 0; i < (x & 15); i++)
        sum = mix(sum, i);
    return sum;
}
NOINLINE unsigned choose(unsigned x) {
    switch (x % 7) {
    case 0: return leaf(x) + 1;
    case 1: return leaf(x) ^ 5;
    case 2: return x * 3;
    case 3: return leaf(x + 9);
    case 4: return x - 8;
    case 5: return ~x;
    default: return leaf(x) - leaf(x + 1);
    }
}
NOINLINE unsigned passes_on(unsigned x) { return x > 9 ? choose(x) : leaf(x); }
static unsigned (*volatile by_pointer)(unsigned) = passes_on;

/* The nops in front of it stand behind a function that has no known size. */
__asm__(".pushsection .text.sorted.1,\"ax\",@progbits\n"
        ".type unsized,@function\n"
        "unsized: ret\n"
        ".popsection\n");
__attribute__((noinline, section(".text.sorted.2"))) unsigned behind_unsized(unsigned x) { return mix(x, 77); }

PLAIN int main(void) {
    int patched = patch();
    unsigned sum = 0;
    for (unsigned i = 0; i < 200; i++) {
        volatile unsigned count = i + 1;
        sum = mix(sum, by_pointer(i) + spin(&count) + behind_unsized(i));
    }
    printf("%d patched, %u calls seen, %08x\n", patched, calls, sum);
    return 0;
}
