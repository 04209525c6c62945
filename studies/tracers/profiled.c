/* A second of code into which counters can only be put by the stack, for a profiler that unwinds from a signal. */
#define main stepping
#include "../../tests/cases/backtrace_signal/main.c"
#undef main

__attribute__((noinline)) static unsigned work(unsigned count) {
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        flagged(i * 0x7fffffff + 4, 6 - i);
        sum = mix(sum, below + 2u * equal + 4u * signs + 8u * parity);
    }
    return sum;
}

int main(void) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 200; i++)
        sum = mix(sum, work(1000000));
    printf("%08x\n", sum);
    return 0;
}
