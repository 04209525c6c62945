/* What cases share that look at the stack while they run: names, and single steps (x86-64). Include it behind `_GNU_SOURCE`. */
#ifndef AFTERLINK_CASE_STACK_H
#define AFTERLINK_CASE_STACK_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Appends the name of the function around `address`, or a question mark, if `text` has room for it; gives it. */
static const char *add_name(char *text, size_t size, const void *address) {
    Dl_info info;
    const char *name = dladdr(address, &info) && info.dli_sname ? info.dli_sname : "?";
    if (strlen(text) + strlen(name) + 2 < size) {
        strcat(text, " ");
        strcat(text, name);
    }
    return name;
}

/* Has a signal come behind each instruction, or no longer. */
static void trap_flag(int on) {
    unsigned long flags;
    __asm__ volatile("subq $128, %%rsp; pushfq; popq %0; addq $128, %%rsp" : "=r"(flags));
    flags = on ? flags | 0x100 : flags & ~0x100ul;
    __asm__ volatile("subq $128, %%rsp; pushq %0; popfq; addq $128, %%rsp" : : "r"(flags) : "cc");
}

#endif
