/* The names on the stack by the chain of frame pointers alone, as profilers and sanitizers follow it: from what is called, and at each instruction. Code
   that sets its frame pointer has a return address above it, wherever the code stands. */
#define _GNU_SOURCE
#include "case.h"
#include "stack.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

struct frame { struct frame *above; void *back; };

static char *top_of_stack;
static unsigned walked, whole, without_frame, beside;
static volatile int is_telling; /* who asks for names holds a lock */

static int is_on_stack(struct frame *frame, char *low) {
    return (char *)frame >= low && (char *)frame + sizeof *frame <= top_of_stack && (unsigned long)frame % 8 == 0;
}

/* Up to `main`. */
static void add_frames(char *text, size_t size, struct frame *frame, char *low) {
    while (is_on_stack(frame, low) && !strstr(text, " main")) {
        add_name(text, size, (char *)frame->back - 1);
        low = (char *)(frame + 1);
        frame = frame->above;
    }
}

/* What is called tells who called it. */
NOINLINE void tell(const char *where) {
    static const char *told[64];
    char text[400] = "";
    is_telling = 1;
    unsigned known = 0;
    while (known < 64 && told[known] && told[known] != where)
        known++;
    if (known < 64 && !told[known]) {
        told[known] = where;
        add_frames(text, sizeof text, __builtin_frame_address(0), __builtin_frame_address(0));
        printf("%s:%s\n", where, text);
    }
    walked++;
    is_telling = 0;
}

static void on_step(int signal, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    void *at = (void *)context->uc_mcontext.gregs[REG_RIP];
    struct frame *frame = (struct frame *)context->uc_mcontext.gregs[REG_RBP];
    char text[400] = "", direct[80], called[80];
    Dl_info own;
    (void)signal, (void)info;
    if (is_telling || !dladdr(at, &own) || !own.dli_sname || strncmp(own.dli_sname, "step_", 5))
        return;
    /* A return address is on its way. */
    if (!is_on_stack(frame, (char *)context->uc_mcontext.gregs[REG_RSP])) {
        beside++;
        return;
    }
    add_name(text, sizeof text, at);
    add_frames(text, sizeof text, frame, (char *)context->uc_mcontext.gregs[REG_RSP]);
    snprintf(direct, sizeof direct, " %s main", own.dli_sname);
    snprintf(called, sizeof called, " %s step_all main", own.dli_sname);
    if (!strcmp(text, called) || strstr(text, " step_outer step_all main") || !strcmp(text, " step_all main"))
        whole++;
    else if (!strcmp(text, direct) || strstr(text, " step_all main") || !strcmp(own.dli_sname, "step_all"))
        without_frame++; /* in front of, or behind, its frame */
    else
        printf("lost in %s:%s\n", own.dli_sname, text);
}

NOINLINE unsigned step_leaf(unsigned x, unsigned y) { return mix(x, y) + 3; }

NOINLINE unsigned step_short(unsigned x) {
    if (x % 5 == 0)
        return x;
    tell("short");
    return x + 1;
}

NOINLINE unsigned step_loop(unsigned x) {
    unsigned sum = x;
    for (unsigned i = 0; i < x % 4 + 1; i++)
        sum = mix(sum, step_leaf(sum, i));
    tell("loop");
    return sum;
}

/* More than a displacement of one byte reaches. */
NOINLINE unsigned step_wide(unsigned x) {
    volatile unsigned room[80];
    for (unsigned i = 0; i < 80; i += 20)
        room[i] = x + i;
    tell("wide");
    return room[20 * (x % 4)];
}

NOINLINE unsigned step_last(unsigned x) { return step_short(x + 2); }

NOINLINE unsigned step_many(unsigned a, unsigned b, unsigned c, unsigned d) {
    unsigned w = opaque(a), x = opaque(b), y = opaque(c), z = opaque(d);
    tell("many");
    w = mix(w, step_leaf(x, y));
    return w + x * y - z;
}

NOINLINE unsigned step_outer(unsigned x) {
    unsigned sum = step_short(x) + step_wide(x);
    if (sum % 7 == 1)
        sum += step_last(sum);
    return sum + step_loop(x);
}

NOINLINE unsigned step_all(unsigned x) {
    unsigned sum = x;
    for (unsigned i = 0; i < 12; i++) {
        sum = mix(sum, step_outer(sum + i));
        sum = mix(sum, step_many(sum, i, x, sum ^ i));
        sum = mix(sum, step_last(i));
    }
    return sum;
}

int main(void) {
    struct sigaction action = {0};
    top_of_stack = (char *)__builtin_frame_address(0) + sizeof(struct frame);
    action.sa_sigaction = on_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    trap_flag(1);
    unsigned sum = step_all(opaque(5));
    trap_flag(0);
    printf("%u %d %d %08x\n", walked, whole > 500, beside * 8 < whole && without_frame * 8 < whole, sum);
    return 0;
}
