/* Tracing probes, in the form of <sys/sdt.h>, and a tracer in the program itself: it finds the notes in its own file, as tracers do by
   the section's name, writes breakpoints over the probes' nops, and reads the arguments where the notes say. */
#define _GNU_SOURCE
#include "case.h"
#include <fcntl.h>
#include <elf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

/* A note: the probe's place, where the base was linked, a semaphore, and three strings. */
#define NOTE(name, arguments)                                                                                                    \
    ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                                                                      \
    ".4byte 992f-991f,994f-993f,3\n"                                                                                             \
    "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                                                                  \
    "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte semaphore_of_case\n"                                                        \
    ".asciz \"case\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n994: .balign 4\n.popsection\n"
#define PROBE(name, arguments, ...) __asm__ volatile("990: nop\n" NOTE(name, arguments)::__VA_ARGS__)

__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
        ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n");
extern const char base_as_linked __asm__("_.stapsdt.base") __attribute__((visibility("hidden")));
__attribute__((section(".probes"), used)) volatile unsigned short semaphore_of_case;

enum { PROBES = 16 };
static struct probe { uintptr_t place; const char *name, *arguments; unsigned hits, sum; } probes[PROBES];
static unsigned count;

static uint64_t register_named(const ucontext_t *context, const char *name, size_t size) {
    static const struct { const char *name; int number; } known[] = {
        {"ax", REG_RAX}, {"bx", REG_RBX}, {"cx", REG_RCX}, {"dx", REG_RDX}, {"si", REG_RSI}, {"di", REG_RDI}, {"bp", REG_RBP},
        {"sp", REG_RSP}, {"8", REG_R8}, {"9", REG_R9}, {"10", REG_R10}, {"11", REG_R11}, {"12", REG_R12}, {"13", REG_R13},
        {"14", REG_R14}, {"15", REG_R15}};
    while (size > 1 && (*name == 'e' || *name == 'r'))
        name++, size--;
    if (size > 2 && name[size - 1] == 'd')
        size--;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == size && !memcmp(known[i].name, name, size))
            return (uint64_t)context->uc_mcontext.gregs[known[i].number];
    return 0xbad;
}

/* `-4@$5`, `4@%eax`, `-4@12(%rsp)`. */
static uint32_t argument(const ucontext_t *context, const char *text) {
    text = strchr(text, '@') + 1;
    if (*text == '$')
        return (uint32_t)strtol(text + 1, NULL, 0);
    if (*text == '%')
        return (uint32_t)register_named(context, text + 1, strcspn(text + 1, " "));
    char *end;
    long offset = strtol(text, &end, 0);
    uint32_t value;
    memcpy(&value, (void *)(register_named(context, end + 2, strcspn(end + 2, ")")) + (uint64_t)offset), sizeof value);
    return value;
}

static void hit(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    uintptr_t place = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] - 1;
    for (unsigned i = 0; i < count; i++) {
        if (probes[i].place == place) {
            probes[i].hits++;
            for (const char *at = probes[i].arguments; *at; at += strcspn(at, " "), at += *at == ' ')
                probes[i].sum = mix(probes[i].sum, argument(context, at));
            /* The nop is done: control is behind it. */
            return;
        }
    }
    static const char text[] = "a breakpoint that nobody set\n";
    write(2, text, sizeof text - 1);
    _exit(1);
}

/* The file that this code comes from: a program or a shared object. */
static int own_file(void) {
    char line[4096], path[4096];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &start, &end, path) == 3 && start <= (uintptr_t)&base_as_linked &&
            (uintptr_t)&base_as_linked < end)
            break;
    fclose(maps);
    return open(path, O_RDONLY);
}

static void set_breakpoints(void) {
    int fd = own_file();
    struct stat about;
    fstat(fd, &about);
    const char *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const Elf64_Ehdr *header = (const void *)bytes;
    const Elf64_Shdr *sections = (const void *)(bytes + header->e_shoff);
    const char *names = bytes + sections[header->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (strcmp(names + sections[i].sh_name, ".note.stapsdt"))
            continue;
        const char *at = bytes + sections[i].sh_offset, *end = at + sections[i].sh_size;
        while (at < end) {
            const Elf64_Nhdr *note = (const void *)at;
            const char *description = at + sizeof *note + (note->n_namesz + 3 & ~3u);
            uint64_t words[3];
            memcpy(words, description, sizeof words);
            const char *provider = description + sizeof words, *name = provider + strlen(provider) + 1;
            at = description + (note->n_descsz + 3 & ~3u);
            if (strcmp(provider, "case"))
                continue;
            uintptr_t moved_by = (uintptr_t)&base_as_linked - words[1];
            if ((uintptr_t)&semaphore_of_case != words[2] + moved_by)
                puts("the semaphore is not where the note says");
            struct probe probe = {words[0] + moved_by, name, name + strlen(name) + 1, 0, 1};
            unsigned char *code = (unsigned char *)probe.place;
            if (*code != 0x90 || count == PROBES)
                printf("%s: no nop\n", name);
            mprotect((void *)(probe.place & ~4095ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
            *code = 0xcc;
            probes[count++] = probe;
        }
    }
    close(fd);
}

static int by_name(const void *a, const void *b) {
    const struct probe *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->sum > y->sum) - (x->sum < y->sum);
}

/* A loop, with probes at both ends of a block, one of them alone in its block. */
NOINLINE unsigned loop(unsigned n) {
    unsigned sum = 1;
    for (unsigned i = 0; i < n; i++) {
        PROBE("turn", "4@%0 4@%1", "r"(i), "r"(sum));
        if (opaque(i) % 3 == 0) {
            sum = mix(sum, i);
            PROBE("third", "4@%0", "r"(sum * 5));
        } else if (i % 7 == 5) {
            PROBE("alone", "4@%0", "n"(17));
        }
    }
    return sum;
}

/* The flags are needed behind the probe, so that no counter may change them, and the argument is not. */
NOINLINE int between(unsigned a, unsigned b) {
    unsigned c = opaque(a * 7 + b);
    __asm__ goto("cmpl %[b],%[a]\n"
                 "990: nop\n" NOTE("between", "4@%k[c]")
                 "jb %l[below]\n"
                 :
                 : [a] "r"(a), [b] "r"(b), [c] "r"(c)
                 : "cc"
                 : below);
    return 3;
below:
    return 4;
}

/* Two probes, one behind the other, in front of a place that is also jumped to. */
NOINLINE unsigned beside(unsigned x) {
    unsigned slot[4] = {x, x * 3, x + 9, 0};
    __asm__ volatile("testl $1,%[x]\n"
                     "jz 1f\n"
                     "990: nop\n" NOTE("first", "4@%[slot] 4@%[x]")
                     "990: nop\n" NOTE("second", "4@$3")
                     "1: incl %[last]\n"
                     : [last] "+m"(slot[3])
                     : [slot] "m"(slot[2]), [x] "r"(x)
                     : "cc");
    return slot[0] + slot[1] + slot[3];
}

/* Where code stands twice, both copies have a note. */
static inline __attribute__((always_inline)) unsigned twice(unsigned x) {
    PROBE("copied", "4@%0", "r"(x));
    return x * 3;
}
NOINLINE unsigned one(unsigned x) { return twice(x + 1); }
NOINLINE unsigned other(unsigned x) { return twice(x + 2) ^ 5; }

/* The same but for the probe's name, or for having none: whoever makes one of them has a tracer see too much. */
static volatile unsigned seen;
NOINLINE unsigned same(unsigned x) {
    PROBE("same", "4@%0", "r"(x));
    seen += x;
    return x + 4;
}
NOINLINE unsigned alike(unsigned x) {
    PROBE("alike", "4@%0", "r"(x));
    seen += x;
    return x + 4;
}

NOINLINE unsigned unlike(unsigned x) {
    __asm__ volatile("nop" ::"r"(x));
    seen += x;
    return x + 4;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = hit, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    set_breakpoints();
    unsigned sum = loop(opaque(50));
    for (unsigned i = 0; i < 20; i++) {
        sum = mix(sum, (unsigned)between(i, opaque(9)));
        sum = mix(sum, beside(i));
        sum = mix(sum, one(i) + other(i));
        sum = mix(sum, same(i) + alike(i + 1) - unlike(i));
    }
    qsort(probes, count, sizeof *probes, by_name);
    for (unsigned i = 0; i < count; i++)
        printf("%s: %u hits, %08x\n", probes[i].name, probes[i].hits, probes[i].sum);
    printf("%08x\n", sum);
    return 0;
}
