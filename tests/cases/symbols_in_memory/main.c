/* Looks functions of its own object up by name in memory, as the runtime of -fsanitize=cfi does (compiler-rt's cfi.cpp): nothing in memory tells how many
   dynamic symbols there are, so they are taken to end where their names begin, and nothing is found if these do not stand behind them in the same segment, or
   reach to its end. Both functions are split, which adds symbols to the table. */
#define _GNU_SOURCE
#include "case.h"
#include <link.h>
#include <stdio.h>
#include <string.h>

NOINLINE unsigned first(unsigned x) {
    if (x % 3 == 0)
        return mix(x, 7);
    return x > 100 ? x - 1 : mix(x, x);
}

NOINLINE unsigned second(unsigned x) {
    unsigned sum = x;
    for (unsigned i = 0; i < x % 5; i++)
        sum = mix(sum, first(i));
    return sum;
}

struct search {
    const char *name;
    ElfW(Addr) found;
};

static int in_segment(const struct dl_phdr_info *info, ElfW(Addr) from, ElfW(Addr) to) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        ElfW(Addr) start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && from >= start && to < start + segment->p_memsz)
            return 1;
    }
    return 0;
}

static int search(struct dl_phdr_info *info, size_t size, void *data) {
    struct search *search = data;
    const ElfW(Dyn) *entry = NULL;
    (void)size;
    ElfW(Addr) own = (ElfW(Addr))first;
    if (!in_segment(info, own, own))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    ElfW(Addr) symbols = 0, names = 0, bytes = 0;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB) symbols = entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRSZ) bytes = entry->d_un.d_val;
    }
    if (symbols > names || !in_segment(info, symbols, names + bytes))
        return 1;
    for (const ElfW(Sym) *symbol = (const void *)symbols; (ElfW(Addr))symbol < names && symbol->st_name < bytes; symbol++)
        if (!search->found && symbol->st_shndx != SHN_UNDEF && strcmp((const char *)names + symbol->st_name, search->name) == 0)
            search->found = info->dlpi_addr + symbol->st_value;
    return 1;
}

static int is_found(const char *name, unsigned (*address)(unsigned)) {
    struct search what = {name, 0};
    dl_iterate_phdr(search, &what);
    return what.found && what.found == (ElfW(Addr))address;
}

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 40; i++)
        sum = mix(sum, first(i * 7) + second(i));
    printf("first %d\n", is_found("first", first));
    printf("second %d\n", is_found("second", second));
    printf("nobody %d\n", is_found("nobody", first));
    printf("%08x\n", sum);
    return 0;
}
