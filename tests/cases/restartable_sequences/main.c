/* Restartable sequences: the kernel compares the instruction pointer with a descriptor's start and length, and on a signal goes
   on at its abort handler, if four signature bytes stand in front of that. Some of the sequences never end but by being aborted. */
#include "case.h"
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/time.h>
#include <unistd.h>

#define SIGNATURE "0x53053053"
/* Undefined on purpose: an operand that no instruction has. */
#define MARK ".byte 0x0f,0xb9,0x3d\n.long " SIGNATURE "\n"

static struct rseq *area(void) { return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset); }

/* In the section that librseq has for descriptors, with its handler apart from all functions. */
NOINLINE int add(volatile unsigned *word, unsigned number) {
    __asm__ goto(".pushsection __rseq_cs,\"aw\"\n.balign 32\n"
                 "3: .long 0,0\n.quad 1f,2f-1f,4f\n.popsection\n"
                 ".pushsection __rseq_cs_ptr_array,\"aw\"\n.quad 3b\n.popsection\n"
                 "leaq 3b(%%rip),%%rax\nmovq %%rax,8(%[area])\n"
                 "1: movl (%[word]),%%eax\n"
                 "testl $1,%[number]\njz 5f\n"
                 "addl $7,%%eax\n"
                 "5: addl %[number],%%eax\n"
                 "movl %%eax,(%[word])\n"
                 "2:\n"
                 ".pushsection __rseq_failure,\"ax\"\n" MARK "4: jmp %l[aborted]\n.popsection\n"
                 :
                 : [area] "r"(area()), [word] "r"(word), [number] "r"(number)
                 : "rax", "memory", "cc"
                 : aborted);
    return 1;
aborted:
    return 0;
}

/* Nothing but the relocations tells what this one is: it stands among constants, without a symbol. */
NOINLINE int wait(volatile unsigned *turns) {
    __asm__ goto(".pushsection .data.rel.ro,\"aw\"\n.balign 32\n"
                 "3: .long 0,0\n.quad 1f,2f-1f,4f\n.popsection\n"
                 "leaq 3b(%%rip),%%rax\nmovq %%rax,8(%[area])\n"
                 "1: incl (%[turns])\n"
                 "cmpl $0,(%[turns])\njne 5f\n"
                 "incl (%[turns])\n"
                 "5: pause\n"
                 "jmp 1b\n"
                 "2: ud2\n" MARK "4: nop\n"
                 "jmp %l[aborted]\n"
                 :
                 : [area] "r"(area()), [turns] "r"(turns)
                 : "rax", "memory", "cc"
                 : aborted);
    return 0;
aborted:
    return 1;
}

/* The handler is a function of its own, as tcmalloc has it: the signature stands in front of its entry. Start and handler have names,
   so that they look like any function and any label that data hold. */
__asm__(".text\n.balign 16\n"
        ".globl stop_waiting\n.hidden stop_waiting\n.type stop_waiting,@function\n"
        "    " MARK "stop_waiting:\n"
        ".cfi_startproc\n"
        "    movl $1,%eax\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size stop_waiting,.-stop_waiting\n"
        ".balign 16\n"
        ".globl wait_apart\n.hidden wait_apart\n.type wait_apart,@function\n"
        "wait_apart:\n"
        ".cfi_startproc\n"
        "    leaq sequence_of_wait_apart(%rip),%rax\n"
        "    movq %rax,8(%rdi)\n"
        ".globl start_of_wait_apart\n.hidden start_of_wait_apart\n"
        "start_of_wait_apart:\n"
        "1:  incl (%rsi)\n"
        "    cmpl $0,(%rsi)\n"
        "    jne 5f\n"
        "    incl (%rsi)\n"
        "5:  pause\n"
        "    cmpl $0,(%rsi)\n"
        "    jne 1b\n"
        "2:  xorl %eax,%eax\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size wait_apart,.-wait_apart\n"
        ".section .data.rel.local,\"aw\"\n.balign 32\n"
        ".local sequence_of_wait_apart\n"
        "sequence_of_wait_apart: .long 0,0\n.quad start_of_wait_apart,2b-1b,stop_waiting\n"
        ".text\n");
int wait_apart(struct rseq *, volatile unsigned *turns);

/* The descriptor is made when it is needed. */
NOINLINE int wait_on_stack(volatile unsigned *turns) {
    struct rseq_cs made __attribute__((aligned(32)));
    memset(&made, 0, sizeof made);
    int aborted;
    __asm__ volatile("leaq 1f(%%rip),%%rax\nmovq %%rax,8(%[made])\n"
                     "leaq 2f(%%rip),%%rcx\nsubq %%rax,%%rcx\nmovq %%rcx,16(%[made])\n"
                     "leaq 4f(%%rip),%%rax\nmovq %%rax,24(%[made])\n"
                     "movq %[made],8(%[area])\n"
                     "1: incl (%[turns])\n"
                     "cmpl $0,(%[turns])\njne 5f\n"
                     "incl (%[turns])\n"
                     "5: pause\n"
                     "jmp 1b\n"
                     "2: xorl %[aborted],%[aborted]\n"
                     "jmp 6f\n" MARK "4: movl $1,%[aborted]\n"
                     "6: movq $0,8(%[area])\n"
                     : [aborted] "=&r"(aborted)
                     : [area] "r"(area()), [turns] "r"(turns), [made] "r"(&made)
                     : "rax", "rcx", "memory", "cc");
    return aborted;
}

/* It jumps by a table, so that places in it may well be named: but a part of its length is not. */
NOINLINE int wait_and_choose(volatile unsigned *turns, unsigned which) {
    int result = 0;
    __asm__ goto(".pushsection .data.rel.ro,\"aw\"\n.balign 32\n"
                 "3: .long 0,0\n.quad 1f,2f-1f,4f\n.popsection\n"
                 "leaq 3b(%%rip),%%rax\nmovq %%rax,8(%[area])\n"
                 "1: incl (%[turns])\n"
                 "testl $1,(%[turns])\njne 5f\n"
                 "pause\n"
                 "5: cmpl $0,(%[turns])\njne 1b\n"
                 "2: jmp %l[aborted]\n" MARK "4: jmp %l[aborted]\n"
                 :
                 : [area] "r"(area()), [turns] "r"(turns)
                 : "rax", "memory", "cc"
                 : aborted);
aborted:
    switch (opaque(which)) {
    case 0: result = (int)opaque(1); break;
    case 1: result = (int)mix(opaque(2), 3) & 1; break;
    case 2: result = (int)mix(opaque(5), 4) & 3; break;
    case 3: result = (int)mix(opaque(7), 9) & 7; break;
    case 4: result = (int)mix(opaque(8), 1) & 15; break;
    case 5: result = (int)mix(opaque(6), 6) & 31; break;
    case 6: result = (int)mix(opaque(4), 3) & 63; break;
    }
    return result;
}

/* Moves: nothing in it is a sequence. */
NOINLINE unsigned turns_of(unsigned sum, unsigned turns) { return turns ? mix(sum, 1) : mix(sum, 2); }

static void tick(int signal) { (void)signal; }

int main(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    int registered = __rseq_size > 0 && (int)area()->cpu_id >= 0;
    unsigned sum = 1, word = 0, aborted = 0, again = 0;
    for (unsigned i = 0; registered && i < 20; i++) {
        volatile unsigned turns = 1;
        aborted += (unsigned)wait(&turns);
        aborted += (unsigned)wait_apart(area(), &turns);
        aborted += (unsigned)wait_on_stack(&turns);
        sum = mix(sum, (unsigned)wait_and_choose(&turns, i % 8));
        sum = turns_of(sum, turns);
    }
    for (unsigned i = 0; registered && i < 300000; i++)
        while (!add(&word, i))
            again++;
    setitimer(ITIMER_REAL, &never, NULL);
    if (!registered) {
        fputs("this kernel has no restartable sequences\n", stderr);
        /* What they would have come to. */
        sum = 0x4268b3df, word = 2051227040, aborted = 60;
    }
    printf("%u aborted, %u, %08x\n", aborted, word, sum);
    return 0;
}
