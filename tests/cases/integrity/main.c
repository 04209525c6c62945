/* A module that holds its own code against what was linked, as FIPS modules hold theirs against a hash. It calls out of itself; what
   it calls may move, and its own bytes may not change. */
#include "case.h"
#include <stdio.h>

extern const unsigned char module_start[], module_end[];
unsigned digest(unsigned x);

struct module { const unsigned char *start; unsigned long size; };
struct module second_module(void);
unsigned first_of_three(unsigned x), third_of_three(unsigned x);

/* push %rbx; mov %edi,%ebx; call outside; call step; add %ebx,%eax; pop %rbx; ret; lea 7(%rax,%rax,2),%eax; jmp behind */
static const unsigned char first[] = {0x53, 0x89, 0xfb, 0xe8, 0x38, 0, 0, 0, 0xe8, 0x04, 0, 0, 0, 0x01, 0xd8, 0x5b, 0xc3,
                                      0x8d, 0x44, 0x40, 0x07, 0xeb, 0x39};
/* mov %edi,%eax; call inner_of_three; call *%rdx; ret; lea taken(%rip),%rdx; ret; jmp outside */
static const unsigned char second[] = {0x89, 0xf8, 0xe8, 0x03, 0, 0, 0, 0xff, 0xd2, 0xc3, 0x48, 0x8d, 0x15, 0x4f, 0, 0, 0, 0xc3,
                                       0xeb, 0xcc};

extern const unsigned char single_start[], single_end[];
unsigned single(unsigned x);

/* jmp outside */
static const unsigned char third[] = {0xeb, 0xbe};

NOINLINE int is_linked(const unsigned char *from, const unsigned char *to, const unsigned char *linked) {
    while (from < to)
        if (*from++ != *linked++)
            return 0;
    return 1;
}

int main(void) {
    struct module other = second_module();
    unsigned sum = 1;
    if (module_end - module_start != sizeof first || !is_linked(module_start, module_end, first))
        puts("the module's code is not what was linked");
    if (other.size != sizeof second || !is_linked(other.start, other.start + other.size, second))
        puts("the second module's code is not what was linked");
    if (single_end - single_start != sizeof third || !is_linked(single_start, single_end, third))
        puts("the single function is not what was linked");
    for (unsigned i = 0; i < 100; i++)
        sum = mix(sum, digest(opaque(i)) + first_of_three(i) + third_of_three(sum));
    printf("%08x\n", sum);
    return 0;
}
