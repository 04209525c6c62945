/* Tiny functions, functions that are the same or nearly, and calls of shared libraries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif

static unsigned total, rounds;
static unsigned table[16];

/* Each is a few instructions that only compute. */
NOINLINE static unsigned twice(unsigned n) { return n * 2 + 1; }
#if defined(APART)
unsigned mixed(unsigned n);
#else
NOINLINE static unsigned mixed(unsigned n) { return (n ^ 0x5bd1e995) >> 3; }
#endif
NOINLINE static void count(unsigned n) { total += n; }
NOINLINE static void next_round(void) { rounds++; }
NOINLINE static unsigned entry(unsigned n) { return table[n & 15]; }
NOINLINE static unsigned nearly(unsigned n) { return n * 2 + 3; }

/* The same, by pairs and threes. */
#define SHARE(name, limit, message)                                                                                    \
    NOINLINE static unsigned name(unsigned n, const char *text) {                                                      \
        unsigned found = (unsigned)strlen(text);                                                                       \
        for (unsigned i = 0; i < n % 7; i++) {                                                                         \
            found = found * 31 + twice(i);                                                                             \
            if (found > limit)                                                                                         \
                puts(message);                                                                                         \
        }                                                                                                              \
        count(found);                                                                                                  \
        return found;                                                                                                  \
    }
SHARE(red, 4000000000u, "large")
SHARE(green, 4000000000u, "large")
SHARE(blue, 4000000000u, "large")
SHARE(white, 4000000001u, "large")
SHARE(black, 4000000000u, "larger")

#define LIST(name)                                                                                                     \
    NOINLINE static char *name(unsigned n) {                                                                           \
        char *made = malloc(n + 1);                                                                                    \
        if (!made)                                                                                                     \
            abort();                                                                                                   \
        memset(made, 'a' + (int)(n % 26), n);                                                                          \
        made[n] = 0;                                                                                                   \
        return made;                                                                                                   \
    }
LIST(names)
LIST(words)
LIST(texts)

/* They call themselves, each other, and what becomes one first. */
NOINLINE static unsigned fall(unsigned n) { return n < 2 ? mixed(n) : fall(n - 1) + fall(n - 2); }
NOINLINE static unsigned drop(unsigned n) { return n < 2 ? mixed(n) : drop(n - 1) + drop(n - 2); }
NOINLINE static unsigned upper(unsigned n) { return red(n, "upper") + entry(n); }
NOINLINE static unsigned lower(unsigned n) { return green(n, "upper") + entry(n); }

/* Tiny ones that are the same, in functions that become the same by that. */
NOINLINE static unsigned near_one(unsigned n) { return n * 9 + 4; }
NOINLINE static unsigned near_two(unsigned n) { return n * 9 + 4; }
NOINLINE static unsigned around_one(unsigned n) { return near_one(n) + mixed(n ^ 3) * 5; }
NOINLINE static unsigned around_two(unsigned n) { return near_two(n) + mixed(n ^ 3) * 5; }

/* Known by their address. */
NOINLINE static unsigned chosen(unsigned n) { return n < 9 ? twice(n) : mixed(n) + nearly(n); }
NOINLINE unsigned offered(unsigned n) { return n < 5 ? mixed(n) : twice(n) + nearly(n); }
static unsigned (*const choices[])(unsigned) = {chosen, offered};

/* They never end: by one jump, and by two that lead to each other. */
NOINLINE static void stall(void) {
    for (;;)
        __asm__ volatile("");
}
void circle(void);
__asm__(".text\n.type circle, @function\ncircle:\n.cfi_startproc\nxor %eax, %eax\n1:\tjmp 3f\n2:\tnop\njmp 1b\n"
        "3:\tjmp 2b\n.cfi_endproc\n.size circle, . - circle\n");

int main(int argc, char **argv) {
    unsigned sum = (unsigned)argc + (argv[0] == NULL);
    for (unsigned n = 0; n < 40; n++) {
        table[n & 15] ^= mixed(n);
        sum = sum * 33 + red(n, "red") + green(n, "green") + blue(n, "blue") + white(n, "white") + black(n, "black");
        char *made[] = {names(n % 9), words(n % 5), texts(n % 4)};
        for (int i = 0; i < 3; i++) {
            sum += (unsigned)strlen(made[i]);
            free(made[i]);
        }
        sum += fall(n % 11) + drop(n % 12) + upper(n) + lower(n + 1) + choices[n & 1](n) + nearly(n);
        sum ^= around_one(n) + around_two(sum) + near_one(sum) * near_two(n);
        next_round();
    }
    if (rounds == 0)
        stall();
    if (rounds == 1)
        circle();
    printf("%u %u %u\n", sum, total, rounds);
    return 0;
}
