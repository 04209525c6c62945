/* The names on the stack from inside of a signal handler: the interrupted instruction is the faulting one itself, in the
   middle of a prologue, an epilogue, a leaf, a loop; each needs the row of exactly that instruction. */
#define _GNU_SOURCE
#include "case.h"
#include "stack.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>
#ifdef LIBUNWIND /* studies/tracers */
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

static sigjmp_buf back;
static unsigned steps, traced;
static unsigned long lowest = ~0ul;

struct names { char text[400]; int interrupted; };

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *argument) {
    struct names *names = argument;
    int before = 0;
    unsigned long at = _Unwind_GetIPInfo(context, &before);
    const char *name = add_name(names->text, sizeof names->text, (void *)(at - !before));
    names->interrupted |= before;
    return strcmp(name, "main") ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void walk(struct names *names) {
#ifdef LIBUNWIND
    void *places[64];
    int count = unw_backtrace(places, 64);
    for (int i = 0; i < count; i++)
        add_name(names->text, sizeof names->text, places[i]);
#else
    _Unwind_Backtrace(one_frame, names);
#endif
}

NOINLINE int faults(int *where, int x) {
    int kept = (int)opaque((unsigned)x);
    if (x > 2)
        *where = x;
    return kept;
}
NOINLINE int outer_fault(int x) { return faults(NULL, x) + 1; }

static void on_fault(int signal, siginfo_t *info, void *context) {
    struct names names = {"", 0};
    (void)signal, (void)info, (void)context;
    _Unwind_Backtrace(one_frame, &names);
    printf("fault:%s\n", strstr(names.text, " faults"));
    siglongjmp(back, 1);
}

/* Single steps: after every instruction of `stepped` and what it calls the whole stack is walked. */
static void on_step(int signal, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    struct names names = {"", 0};
    Dl_info at;
    (void)signal, (void)info;
    steps++;
    if (!dladdr((void *)context->uc_mcontext.gregs[REG_RIP], &at) || !at.dli_sname)
        return;
    if (strcmp(at.dli_sname, "stepped") && strcmp(at.dli_sname, "inner") && strcmp(at.dli_sname, "flagged"))
        return;
    walk(&names);
    const char *tail = strstr(names.text, " inner stepped main");
    if (!tail)
        tail = strstr(names.text, " flagged stepped main");
    if (!tail)
        tail = strstr(names.text, " stepped main");
    if (!tail)
        printf("lost in %s:%s\n", at.dli_sname, names.text);
    else
        traced++;
    if ((unsigned long)context->uc_mcontext.gregs[REG_RSP] < lowest)
        lowest = (unsigned long)context->uc_mcontext.gregs[REG_RSP];
}

NOINLINE unsigned inner(unsigned x, unsigned y) {
    unsigned a = opaque(x + 1), b = opaque(y + 2), c = opaque(x ^ y);
    volatile unsigned room[40];
    for (unsigned i = 0; i < 4; i++) {
        room[i] = a * b;
        if (__builtin_expect(room[i] == 1234567, 0))
            c = (unsigned)faults(NULL, 1);
        a += c;
    }
    return a + room[x % 4];
}

/* Every block starts with flags that are still read, and no register is free: whoever adds code here needs the stack, and
   what lies below it is in use. */
void flagged(unsigned, unsigned);
__attribute__((used)) static volatile unsigned char below, equal, signs, parity;
__asm__(".text\n"
        ".globl flagged\n"
        ".type flagged,@function\n"
        "flagged:\n"
        ".cfi_startproc\n"
        "    movl $77,-8(%rsp)\n"
        "    cmp %esi,%edi\n"
        "    jb 1f\n"
        "    js 2f\n"
        "    jp 3f\n"
        "    sete equal(%rip)\n"
        "    jmp 4f\n"
        "1:  setb below(%rip)\n"
        "    jp 3f\n"
        "2:  sets signs(%rip)\n"
        "    jne 4f\n"
        "3:  setp parity(%rip)\n"
        "4:  setp parity(%rip)\n"
        "    pushq %rbx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_rel_offset %rbx, 0\n"
        "    jo 5f\n"
        "    sets signs(%rip)\n"
        "5:  setb below(%rip)\n"
        "    popq %rbx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .cfi_restore %rbx\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size flagged,.-flagged\n");

NOINLINE unsigned stepped(unsigned x) {
    unsigned sum = x;
    for (unsigned i = 0; i < 3; i++)
        sum = mix(sum, inner(sum, i) + inner(i, sum));
    for (unsigned i = 0; i < 9; i++) {
        flagged(i * 0x7fffffff + opaque(4), 6 - opaque(i));
        sum = mix(sum, below + 2u * equal + 4u * signs + 8u * parity);
    }
    return sum;
}

int main(void) {
    struct sigaction action = {0};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    action.sa_sigaction = on_step;
    sigaction(SIGTRAP, &action, NULL);
    if (sigsetjmp(back, 1) == 0)
        outer_fault((int)opaque(3));
    trap_flag(1);
    unsigned sum = stepped(opaque(5));
    trap_flag(0);
    printf("%d %d %d %08x\n", steps > 100, traced > 100, lowest != ~0ul, sum);
    return 0;
}
