/* A handler of faults that looks up where to go on in a table of ranges: each function of copy.S ends where the next one begins, by whose name the
   table says so. A table that only lists neighbours keeps nobody. */
#define _GNU_SOURCE
#include "case.h"
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct range { const char *first, *behind, *handler; };
extern const struct range ranges[];

long bytes_left(char *to, const char *from, long size), words_left(char *to, const char *from, long size);

static void on_fault(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const char *at = (const char *)registers[REG_RIP];
    (void)number, (void)info;
    for (const struct range *range = ranges; range->first; range++)
        if (at >= range->first && at < range->behind) {
            registers[REG_RIP] = (greg_t)range->handler;
            return;
        }
    _exit(3);
}

NOINLINE unsigned open_it(unsigned x) { return x + 1; }
NOINLINE unsigned read_it(unsigned x) { return x * 3; }
NOINLINE unsigned close_it(unsigned x) { return x ^ 0xb10e; }
static unsigned (*const listed[])(unsigned) = {open_it, read_it, close_it};

int main(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to[256];
    unsigned sum = 7;
    munmap(page + 4096, 4096);
    sigaction(SIGSEGV, &action, NULL);
    for (long i = 0; i < 160; i += 8) {
        sum = mix(sum, (unsigned)bytes_left(to, page + 4096 - i, 100));
        sum = mix(sum, (unsigned)words_left(to, page + 4096 - i, 128));
        sum = listed[i / 8 % 3](sum);
    }
    printf("%08x\n", sum);
    return 0;
}
