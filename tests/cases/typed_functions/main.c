/* clang's -fsanitize=kcfi: in front of each function stands a hash of its type, which callers by pointer read. */
#include "case.h"
#include <stdio.h>

typedef unsigned function(unsigned);
unsigned red(unsigned x) { return x * 3 + 7; }
unsigned green(unsigned x) { return x * 5 + 7; }

NOINLINE static unsigned call(function *pointer, unsigned x) { return pointer(x) + 1; }

int main(void) {
    function *volatile functions[] = {red, green};
    printf("%u %u\n", call(functions[0], 10), call(functions[1], 10));
    return 0;
}
