/* clang's -fsanitize=function: in front of each function stand a mark and a hash of its type. Callers by pointer look for the mark,
   and, if it is there, at the hash; a call with another type traps. */
#include "case.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

typedef unsigned function(unsigned);
typedef unsigned long other(unsigned long, unsigned);
unsigned red(unsigned x) { return opaque(x) * 3 + 7; }
unsigned green(unsigned x) { return opaque(x) * 5 + 7; }

/* Without a mark, and what stands in front of it must not seem to be one. */
unsigned behind(unsigned x);
unsigned looks(function *pointer);

static sigjmp_buf back;
static void handle(int number) { siglongjmp(back, number); }

NOINLINE static unsigned call(function *pointer, unsigned x) { return pointer(x) + 1; }
NOINLINE static unsigned call_as_other(other *pointer, unsigned x) { return (unsigned)pointer(x, x) + 1; }

int main(void) {
    function *volatile functions[] = {red, green};
    signal(SIGILL, handle);
    for (unsigned i = 0; i < 2; i++) {
        printf("%u\n", call(functions[i], 10));
        if (sigsetjmp(back, 1))
            printf("caught\n");
        else
            printf("%u\n", call_as_other((other *)functions[i], 10));
    }
    printf("%u %u %u\n", looks(red), looks(behind), call(behind, 10));
    return 0;
}
