/* No C library and no start-up code: its own _start, system calls, a few hundred bytes of code. */
#include "case.h"

static long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
NOINLINE unsigned collatz(unsigned n) {
    unsigned steps = 0;
    for (; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}
NOINLINE char digit(unsigned n) {
    switch (n) {
    case 0: return '0';
    case 1: return '1';
    default: return (char)('0' + n % 10);
    }
}
__attribute__((used)) NOINLINE void start(long *stack) {
    char text[8];
    unsigned n = collatz((unsigned)stack[0] + 26), at = 7;
    text[at] = '\n';
    do {
        text[--at] = digit(n % 10);
        n /= 10;
    } while (n);
    call(1, 1, (long)(text + at), 8 - at);
    call(60, (long)collatz(6), 0, 0);
    __builtin_trap();
}
__asm__(".text\n.globl _start\n.type _start, @function\n_start:\n\txorl %ebp, %ebp\n\tmovq %rsp, %rdi\n\tandq $-16, %rsp\n"
        "\tcall start\n\thlt\n.size _start, . - _start\n");
