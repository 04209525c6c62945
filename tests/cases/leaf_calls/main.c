/* Calls of tiny functions, some of which could stand where they are called. */
#include "case.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

unsigned red_zone(unsigned), system_call(void), pass(unsigned), pass_and_forget(unsigned), keeps_below(unsigned);
unsigned by_carry(unsigned, unsigned), over_vector(unsigned, unsigned), prefixed(unsigned), in_loop(unsigned);
unsigned ends_with_call(unsigned), marked(unsigned), with_next(unsigned);
void add_to_counter(unsigned);
unsigned *place(void);
char *stack_top(void);
extern unsigned counter;

NOINLINE static void clear(unsigned *to) { *to = 0; }
NOINLINE static unsigned load(const unsigned *from) { return *from; }
NOINLINE static unsigned same(unsigned n) { return n; }
NOINLINE static void nothing(void) {}
NOINLINE static unsigned taken(unsigned n) { return n ^ 5; }
static unsigned (*volatile pointer)(unsigned) = taken;

/* The callee faults; the handler leaves for its caller. */
static sigjmp_buf back;
static void on_fault(int number) { siglongjmp(back, number); }
NOINLINE static unsigned faults(const unsigned *from) {
    volatile unsigned before = 7;
    int came = sigsetjmp(back, 1);
    if (came != 0)
        return before + (unsigned)came;
    before = 9;
    return load(from);
}

int main(void) {
    unsigned sum = 3, value = 8;
    char *here = (char *)__builtin_frame_address(0);
    signal(SIGSEGV, on_fault);
    printf("%d %d\n", system_call() == (unsigned)getpid(), stack_top() < here);
    for (unsigned i = 0; i < 100; i++) {
        sum = mix(sum, red_zone(i) + pass(sum) + pass_and_forget(i) + keeps_below(sum));
        sum = mix(sum, by_carry(i, 50) + over_vector(i, 50) * 3 + prefixed(i) + in_loop(i) + ends_with_call(sum));
        add_to_counter(i);
        sum = mix(sum, *place() + marked(i) + with_next(sum) + taken(i) + pointer(sum));
        sum = mix(sum, load(&value) + same(sum));
        nothing();
        if (i % 20 == 0)
            clear(&value);
        value += i;
    }
    printf("%08x %u %u\n", sum, counter, faults((const unsigned *)(unsigned long)opaque(16)));
    return 0;
}
