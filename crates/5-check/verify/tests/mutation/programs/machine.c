/* A stack machine run in three ways: by a switch, by computed gotos, and by a table of functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

enum { PUSH, ADD, SUB, MUL, XOR, SHIFT, DUP, SWAP, LOOP, STOP };

struct machine {
    unsigned stack[64];
    int top;
    unsigned steps;
};

static unsigned started = 0;
unsigned finished = 0;

__attribute__((constructor)) static void start_counting(void) { started = 7; }
__attribute__((destructor)) static void finish_counting(void) {
    if (finished != started)
        puts("finished");
}

NOINLINE void fail(const char *what, int where) {
    fprintf(stderr, "%s at %d\n", what, where);
    abort();
}

NOINLINE unsigned pop(struct machine *m) {
    if (__builtin_expect(m->top <= 0, 0))
        fail("empty stack", (int)m->steps);
    return m->stack[--m->top];
}

NOINLINE void push(struct machine *m, unsigned value) {
    if (__builtin_expect(m->top >= 64, 0))
        fail("full stack", (int)m->steps);
    m->stack[m->top++] = value;
}

NOINLINE unsigned by_switch(struct machine *m, const unsigned char *code, int rounds) {
    const unsigned char *start = code;
    for (;;) {
        unsigned a, b;
        m->steps++;
        switch (*code++) {
        case PUSH: push(m, *code++); break;
        case ADD: a = pop(m); b = pop(m); push(m, a + b); break;
        case SUB: a = pop(m); b = pop(m); push(m, b - a); break;
        case MUL: a = pop(m); b = pop(m); push(m, a * b + 1); break;
        case XOR: a = pop(m); b = pop(m); push(m, a ^ b); break;
        case SHIFT: a = pop(m); push(m, a << 3 | a >> 29); break;
        case DUP: a = pop(m); push(m, a); push(m, a); break;
        case SWAP: a = pop(m); b = pop(m); push(m, a); push(m, b); break;
        case LOOP: if (--rounds > 0) code = start; break;
        case STOP: return pop(m);
        default: fail("unknown instruction", code[-1]);
        }
    }
}

NOINLINE unsigned by_labels(struct machine *m, const unsigned char *code, int rounds) {
    static const void *const labels[] = {&&push, &&add, &&sub, &&mul, &&xor, &&shift, &&dup, &&swap, &&loop, &&stop};
    const unsigned char *start = code;
    unsigned a, b;
#define NEXT m->steps += 2; goto *labels[*code++]
    NEXT;
push: push(m, *code++); NEXT;
add: a = pop(m); b = pop(m); push(m, a + b); NEXT;
sub: a = pop(m); b = pop(m); push(m, b - a); NEXT;
mul: a = pop(m); b = pop(m); push(m, a * b + 1); NEXT;
xor: a = pop(m); b = pop(m); push(m, a ^ b); NEXT;
shift: a = pop(m); push(m, a << 3 | a >> 29); NEXT;
dup: a = pop(m); push(m, a); push(m, a); NEXT;
swap: a = pop(m); b = pop(m); push(m, a); push(m, b); NEXT;
loop: if (--rounds > 0) code = start; NEXT;
stop: return pop(m);
}

typedef void (*operation)(struct machine *);
static void do_add(struct machine *m) { push(m, pop(m) + pop(m)); }
static void do_sub(struct machine *m) { unsigned a = pop(m); push(m, pop(m) - a); }
static void do_mul(struct machine *m) { push(m, pop(m) * pop(m) + 1); }
static void do_xor(struct machine *m) { push(m, pop(m) ^ pop(m)); }
static void do_shift(struct machine *m) { unsigned a = pop(m); push(m, a << 3 | a >> 29); }
static const operation operations[] = {NULL, do_add, do_sub, do_mul, do_xor, do_shift};
operation last_operation = do_shift;

/* A jump through memory. */
NOINLINE void by_last(struct machine *m, const operation *last) { m->steps++; last[0](m); }

NOINLINE unsigned by_functions(struct machine *m, const unsigned char *code) {
    for (; *code != STOP; code++) {
        if (*code == PUSH)
            push(m, *++code);
        else if (*code <= SHIFT)
            operations[*code](m);
        else if (*code == DUP)
            push(m, m->stack[m->top - 1]);
        m->steps += 3;
    }
    by_last(m, &last_operation);
    return pop(m);
}

NOINLINE static int depth(int n) { return n < 2 ? n : depth(n - 1) + depth(n - 2); }
NOINLINE int entry_point(int n) { return depth(n & 15); }

/* Flags that are read again and again: counters between these branches must keep them. Here rcx is free,... */
long flags_read(long a, long b);
__asm__(".text\n.type flags_read, @function\n.globl flags_read\nflags_read:\n.cfi_startproc\n"
        "\tmov %rdi, %rcx\n\txor %eax, %eax\n\tcmp %rsi, %rcx\n\tjo 1f\n"
        "\tlea 1(%rdi,%rsi), %rdx\n\tjl 1f\n\tlea 2(%rdx,%rdi), %rdi\n\tjb 1f\n"
        "\tlea 3(%rsi,%rdi), %rdx\n\tjs 1f\n\tlea 4(%rdx), %rdi\n\tjp 1f\n\tlea 5(%rdi), %rdi\n"
        "1:\tsetg %al\n\tlea (%rdi,%rax), %rax\n\tret\n.cfi_endproc\n.size flags_read, . - flags_read\n");
/* ... and here no register is. */
long flags_kept(long a, long b);
__asm__(".text\n.type flags_kept, @function\n.globl flags_kept\nflags_kept:\n.cfi_startproc\n"
        "\tcmp %rsi, %rdi\n\tjo 1f\n\tlea 1(%rdi,%rsi), %rax\n\tjl 1f\n\tlea 2(%rax,%rdi), %rax\n\tjb 1f\n"
        "\tlea 3(%rsi,%rax), %rax\n\tjs 1f\n\tlea 4(%rax), %rax\n\tjp 1f\n\tlea 5(%rax), %rax\n"
        "1:\tsetg %al\n\tret\n.cfi_endproc\n.size flags_kept, . - flags_kept\n");

static int compare(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return x < y ? -1 : x > y;
}

/* A shift by zero leaves the flags alone. */
NOINLINE int flags_survive(int x, int count) {
    __asm__("1: cmpl $1000, %0\n\tshll %%cl, %0\n\tjl 1b" : "+r"(x) : "c"(count) : "cc");
    return x;
}

/* Behind a trap control may go on. */
NOINLINE unsigned trapped(unsigned x) {
    __asm__ volatile("testl $0x1000, %0\n\tjz 1f\n\tint3\n1:\taddl $3, %0\n\ttestl $0x2000, %0\n\tjz 2f\n\tud2\n"
                     "2:\taddl $5, %0\n\ttestl $0x4000, %0\n\tjz 3f\n\thlt\n3:\taddl $7, %0"
                     : "+r"(x) : : "cc");
    return x;
}

int main(int argc, char **argv) {
    static const unsigned char code[] = {PUSH, 5, PUSH, 9, ADD, DUP, MUL, SHIFT, PUSH, 77, XOR, DUP, PUSH, 3, SUB, ADD, STOP};
    unsigned char looped[32];
    struct machine m;
    unsigned results[12];
    memset(&m, 0, sizeof m);
    memcpy(looped, code, sizeof code);
    looped[sizeof code - 1] = SWAP;
    looped[sizeof code] = STOP;
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    push(&m, 1);
    for (int i = 0; i < 12; i += 3) {
        results[i] = by_switch(&m, i & 1 ? looped : code, rounds);
        results[i + 1] = by_labels(&m, code, rounds);
        results[i + 2] = by_functions(&m, code);
    }
    qsort(results, 12, sizeof *results, compare);
    for (int i = 0; i < 12; i++)
        printf("%08x%c", results[i], i % 4 == 3 ? '\n' : ' ');
    printf("%d %u %u\n", entry_point(rounds + 9), m.steps, started);
    printf("%d %u\n", flags_survive(rounds | 1, 1), trapped((unsigned)rounds));
    printf("%ld %d\n", flags_read(rounds, 2), (int)flags_kept(rounds, 2) & 1);
    return 0;
}
