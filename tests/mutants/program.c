/* Whatever a linked file says is used here, so that a wrong word of it shows: jump tables, labels, function pointers, an IFUNC,
   constructors, thread-local storage, setjmp, signals, names looked up, cleanups, a forced unwinding. All of it runs twice: once
   as it is, and once a single instruction at a time, with a backtrace at each. What the backtraces see (callers, frames,
   registers) is folded into one number. Where the program is loaded must not depend on chance (`setarch -R`). */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline))
typedef unsigned long word;

static word seen = 1, sum = 1;
static int steps = 9000;

static void fold(word *into, word value) { *into = (*into ^ value) * 0x100000001b3 + (*into >> 41); }
NOINLINE void add(word value) { fold(&sum, value); }

/* What a backtrace shows, but for the place where it begins: a jump or a nop more is no difference. */
static word shown, shown_before, begins_at;

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *depth) {
    static const int saved[] = {3, 6, 12, 13, 14, 15};
    word place = _Unwind_GetIP(context);
    fold(&shown, place == begins_at ? 0 : place);
    fold(&shown, _Unwind_GetCFA(context));
    for (int i = 0; i < 6; i++)
        fold(&shown, _Unwind_GetGR(context, saved[i]));
    return --*(int *)depth > 0 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* The trap flag, as the processor keeps it. */
#define TRAP_FLAG 0x100

static int is_near(word address) {
    word distance = address - (word)&is_near;
    return distance + (8ul << 20) < 16ul << 20;
}

static void at_each_instruction(int number, siginfo_t *info, void *state) {
    (void)number, (void)info;
    greg_t *registers = ((ucontext_t *)state)->uc_mcontext.gregs;
    int depth = 24;
    if (steps <= 0)
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    else if (is_near((word)registers[REG_RIP])) {
        shown = 1;
        begins_at = (word)registers[REG_RIP];
        _Unwind_Backtrace(frame, &depth);
        if (shown != shown_before) {
            steps--;
            fold(&seen, shown);
            shown_before = shown;
        }
    }
}

NOINLINE void warn(const char *what, word value) {
    fprintf(stderr, "%s: %lx\n", what, value);
    if (value > 1000)
        abort();
}

/* A jump table whose targets are all over the function. */
NOINLINE word dispatch(word kind, word value) {
    switch (kind) {
    case 0: add(value); return value + 3;
    case 1: return value * 5 ^ dispatch(kind - 1, value);
    case 2: if (__builtin_expect(value == 77, 0)) warn("value", value); return value >> 2;
    case 3: add(value ^ 9); add(value); return value - 1;
    case 4: return value & 1 ? dispatch(2, value) : ~value;
    case 5: return (word)strlen("a text") + value;
    case 6: value = value << 9 | value >> 55; add(value); return value;
    case 8: return dispatch(0, value) + dispatch(3, value);
    case 9: return value % 1001;
    case 11: warn("kind", kind); return 0;
    default: return value ^ kind;
    }
}

NOINLINE word labels(const unsigned char *code, word value) {
    static const void *const places[] = {&&plus, &&times, &&turn, &&call, &&end};
#define NEXT goto *places[*code++]
    NEXT;
plus: value += *code++; NEXT;
times: value *= 31; NEXT;
turn: value = value << 7 | value >> 57; NEXT;
call: value = dispatch(value % 12 == 11 ? 1 : value % 12, value); NEXT;
end: return value;
}

typedef word (*function)(word);
NOINLINE static word first(word n) { return n * 3 + dispatch(n % 7, n); }
NOINLINE static word second(word n) { return n < 3 ? n : second(n - 1) + second(n - 3); }
NOINLINE word third(word n) {
    char *room = alloca(n % 100 + 16);
    memset(room, (int)n, n % 100 + 16);
    return (word)room[n % 100] + first(n);
}
typedef float lanes __attribute__((vector_size(32), aligned(32)));
NOINLINE void fill(lanes *to, word n) {
    for (int i = 0; i < 8; i++)
        (*to)[i] = (float)(n % 50) + (float)i;
}
NOINLINE static word realigned(word n) {
    lanes a, b;
    fill(&a, n);
    fill(&b, n + 1);
    float total = 0;
    for (int i = 0; i < 8; i++)
        total += a[i] * b[7 - i];
    return (word)total + ((word)&a & 31);
}
static const function table[] = {first, second, third, realigned};
function changing = second;
function *indirect = &changing;

static word plain(word n) { return n + 1; }
static word chosen(word n) { return n + 2 + sum % 2; }
static const int wanted = 1;
static function resolve(void) { return *(volatile const int *)&wanted ? chosen : plain; }
word ifunc(word n) __attribute__((ifunc("resolve")));

static __thread word of_thread = 7;
static __thread word zero_of_thread[3];
extern void nobody(void) __attribute__((weak));
static word constructed;
__attribute__((constructor)) static void construct(void) { constructed += 5; }
__attribute__((destructor)) static void destruct(void) { printf("destroyed %lx\n", constructed); fflush(stdout); }
static void at_end(void) { puts("at end"); }

NOINLINE static word many(int count, ...) {
    va_list list;
    word total = 0;
    va_start(list, count);
    while (count-- > 0)
        total += va_arg(list, word) * (word)(count + 1);
    va_end(list);
    return total;
}

static jmp_buf back;
NOINLINE static word leap(word n) {
    if (n > 2)
        longjmp(back, (int)n);
    return leap(n + 1) + 1;
}
NOINLINE static word leaped(void) {
    volatile word before = sum & 3;
    int came = setjmp(back);
    if (came == 0)
        add(leap(before & 1));
    return before + (word)came;
}

static int compare(const void *a, const void *b) {
    word x = *(const word *)a, y = *(const word *)b;
    return x < y ? -1 : x > y;
}
NOINLINE static word sorted(word n) {
    word rows[6];
    for (int i = 0; i < 6; i++)
        rows[i] = (n * (word)(i + 5)) % 11;
    qsort(rows, 6, sizeof *rows, compare);
    return many(6, rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]);
}

/* The frame is found by rbx, and the stack pointer moves in between. */
word by_hand(word n);
__asm__(".text\n.type by_hand, @function\n.globl by_hand\nby_hand:\n.cfi_startproc\n"
        "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\nmov %rsp, %rbx\n.cfi_def_cfa_register %rbx\n"
        "sub $64, %rsp\nand $-64, %rsp\ntest $1, %dil\njz 1f\npush %rdi\ncall add\npop %rax\njmp 2f\n"
        "1:\tlea 5(%rdi,%rdi,2), %rax\n2:\tmov %rbx, %rsp\n.cfi_def_cfa_register %rsp\n"
        ".cfi_remember_state\ncmp $9, %rax\njb 3f\npop %rbx\n.cfi_restore %rbx\n.cfi_def_cfa_offset 8\nret\n"
        "3:\t.cfi_restore_state\npop %rbx\n.cfi_restore %rbx\n.cfi_def_cfa_offset 8\nneg %rax\nret\n"
        ".cfi_endproc\n.size by_hand, . - by_hand\n");

static void on_signal(int number) {
    add((word)number);
    add(first(3));
}

static void clean(word *value) { add(*value + 100); }
NOINLINE static void unwound(word n, struct _Unwind_Exception *exception, _Unwind_Stop_Fn stop) {
    word value __attribute__((cleanup(clean))) = n;
    if (n < 3)
        unwound(n + 1, exception, stop);
    else
        _Unwind_ForcedUnwind(exception, stop, NULL);
    add(value);
}
static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *none) {
    (void)version, (void)class, (void)exception, (void)none;
    static int frames;
    add(_Unwind_GetCFA(context) & 15);
    if (++frames % 4 == 0 || actions & _UA_END_OF_STACK)
        longjmp(back, 1);
    return _URC_NO_REASON;
}
NOINLINE static void force(void) {
    static struct _Unwind_Exception exception;
    if (setjmp(back) == 0)
        unwound(0, &exception, stop);
}

/* Tiny ones that only compute, and some that are the same: passes that change code find work here. */
NOINLINE static word turned(word n) { return n << 5 | n >> 59; }
NOINLINE static void note(word n) { zero_of_thread[2] += n; }
NOINLINE static word loaded(const word *from) { return *from * 3; }
#define SAME(name, text)                                                                                               \
    NOINLINE static word name(word n) {                                                                                \
        word found = (word)strlen(text);                                                                               \
        for (word i = 0; i < n % 4; i++)                                                                               \
            found = turned(found) + dispatch(i, n);                                                                    \
        note(found);                                                                                                   \
        return found + loaded(&found);                                                                                 \
    }
SAME(hill, "a long text")
SAME(slope, "a long text")
SAME(cliff, "a short text")
NOINLINE static word climbs(word n) { return n < 2 ? hill(n) : climbs(n - 2) ^ turned(n); }
NOINLINE static word rises(word n) { return n < 2 ? slope(n) : rises(n - 2) ^ turned(n); }

NOINLINE static void work(word round) {
    static const unsigned char code[] = {0, 200, 1, 2, 3, 0, 9, 2, 3, 1, 3, 4};
    for (word kind = 0; kind < 14; kind++)
        if (kind != 11)
            add(dispatch(kind, round + kind));
    add(labels(code, round));
    for (int i = 0; i < 4; i++)
        add(table[i](round + (word)i));
    add((*indirect)(4) + changing(5) + ifunc(6));
    of_thread += round;
    zero_of_thread[1] += of_thread;
    add(zero_of_thread[1] + (word)(nobody != NULL));
    add(leaped() + sorted(round) + by_hand(round) + by_hand(round * 2 + 9));
    add(hill(round) + slope(round + 1) + cliff(round) + climbs(round + 3) + rises(round + 4) + turned(sum));
}

#ifndef STATIC
NOINLINE static word by_name(void) {
    static const char *const names[] = {"third", "add", "dispatch", "fill", "not_there", "labels", "by_hand", "puts"};
    word found = 0;
    for (int i = 0; i < 8; i++) {
        Dl_info info;
        void *address = dlsym(RTLD_DEFAULT, names[i]);
        found = found * 2 + (address != NULL && dladdr(address, &info) && info.dli_sname && info.dli_saddr == address);
    }
    return found;
}
#endif

int main(int argc, char **argv) {
    struct sigaction trap = {.sa_sigaction = at_each_instruction, .sa_flags = SA_SIGINFO};
    (void)argv;
    atexit(at_end);
    work((word)argc);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    force();
    add(constructed);
#ifndef STATIC
    add(by_name());
#endif
    printf("sum %lx\n", sum);
    fflush(stdout);
    sigaction(SIGTRAP, &trap, NULL);
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp" ::: "cc", "memory");
    work(2);
    int left = steps;
    steps = 0;
    printf("sum %lx, steps left %d\n", sum, left);
    printf("seen %lx\n", seen);
    return (int)(sum % 50);
}
