/* Functions that are the same, that only seem to be, and that somebody can tell apart. */
#include "case.h"
#include <stdio.h>
#include <string.h>
#include <unwind.h>

unsigned told(void), untold(void), told_again(void);
unsigned first_stairs(unsigned), second_stairs(unsigned), third_stairs(unsigned);
unsigned loose_steps(unsigned), aligned_steps(unsigned);

/* What the caller of the caller has in rbx, as the unwinder finds it. */
static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *state) {
    unsigned long *seen = state;
    if (seen[0]++ < 2)
        return _URC_NO_REASON;
    seen[1] = _Unwind_GetGR(context, 3);
    return _URC_END_OF_STACK;
}
NOINLINE unsigned look(void) {
    unsigned long seen[2] = {0, 0};
    _Unwind_Backtrace(frame, seen);
    return (unsigned)seen[1] == 42;
}

#define TWIN(name)                                                                                                     \
    NOINLINE static unsigned name(unsigned n) {                                                                        \
        unsigned sum = n;                                                                                              \
        for (unsigned i = 0; i < n % 9; i++)                                                                           \
            sum = mix(sum, opaque(i));                                                                                 \
        return sum;                                                                                                    \
    }
TWIN(called)
TWIN(called_too)
TWIN(compared)
TWIN(compared_too)
static unsigned (*volatile known[])(unsigned) = {compared, compared_too, aligned_steps};

/* Each calls itself, or the other one of its pair. */
NOINLINE static unsigned single(unsigned n) { return n < 2 ? n + 1 : single(n - 1) * 3 + single(n - 2); }
NOINLINE static unsigned single_too(unsigned n) { return n < 2 ? n + 1 : single_too(n - 1) * 3 + single_too(n - 2); }
static unsigned pong(unsigned n);
NOINLINE static unsigned ping(unsigned n) { return n < 2 ? called(n) : pong(n - 1) * 5 + pong(n - 2); }
NOINLINE static unsigned pong(unsigned n) { return n < 2 ? called_too(n) : ping(n - 1) * 5 + ping(n - 2); }

/* The same but for a number, a text, a variable, a callee. */
static unsigned left, right;
NOINLINE static unsigned plus_left(unsigned n) { return left += n; }
NOINLINE static unsigned plus_right(unsigned n) { return right += n; }
NOINLINE static unsigned text_one(unsigned n) { return n + (unsigned)strlen(&"one, of some length"[opaque(n % 3)]); }
NOINLINE static unsigned text_two(unsigned n) { return n + (unsigned)strlen(&"two, which is longer"[opaque(n % 3)]); }
NOINLINE static unsigned through_left(unsigned n) { return plus_left(n) ^ 77; }
NOINLINE static unsigned through_right(unsigned n) { return plus_right(n) ^ 77; }

/* Never ends in the same way as the other one. */
NOINLINE static unsigned even(unsigned n, unsigned sum) { return n == 0 ? sum : even(n - 1, mix(sum, 2)); }
NOINLINE static unsigned odd(unsigned n, unsigned sum) { return n == 0 ? sum : odd(n - 1, mix(sum, 3)); }

int main(void) {
    unsigned sum = 5;
    printf("%u %u %u\n", told(), untold(), told_again());
    printf("%d %lu\n", known[0] == known[1], (unsigned long)known[2] % 64);
    for (unsigned i = 0; i < 60; i++) {
        sum = mix(sum, called(i) + called_too(i + 1) + compared(i) + compared_too(sum) + known[i % 2](sum));
        sum = mix(sum, first_stairs(i % 3) * 100 + second_stairs(i % 3) * 10 + third_stairs(i % 3));
        sum = mix(sum, loose_steps(i) ^ aligned_steps(sum) ^ known[2](i));
        sum = mix(sum, single(i % 9) + single_too(i % 8) + ping(i % 7) + pong(i % 6));
        sum = mix(sum, plus_left(i) + plus_right(sum) + through_left(i) + through_right(i + 1));
        sum = mix(sum, text_one(i) + text_two(i) + even(i, sum) + odd(i, sum));
    }
    printf("%08x %08x %08x\n", sum, left, right);
    return 0;
}
