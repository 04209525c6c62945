/* Programs that ask whether an address lies in their text, by the symbols that the linker sets at its ends. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
extern const char __executable_start[], etext[], _etext[], edata[];

NOINLINE unsigned one(unsigned x) { return x * 3 + 1; }
static NOINLINE unsigned two(unsigned x) { return x * 5 + 2; }
NOINLINE unsigned three(unsigned x) { return x * 7 + 3; }
NOINLINE unsigned never_taken(unsigned x) {
    unsigned sum = 0;
    for (unsigned i = 0; i < x % 9; i++)
        sum = mix(sum, i);
    return sum;
}
static function *const table[] = {one, two};
const char *const text_end = _etext;

NOINLINE int is_text(const void *address) {
    return (const char *)address >= __executable_start && (const char *)address < etext;
}
NOINLINE int is_before_end(const void *address) { return (const char *)address < text_end; }
NOINLINE int is_data(const void *address) {
    return (const char *)address >= _etext && (const char *)address < edata;
}

int main(void) {
    static int datum = 5;
    function *volatile taken = three;
    printf("%d %d %d %d\n", is_text((void *)table[opaque(0)]), is_text((void *)table[opaque(1)]), is_text((void *)taken),
           is_text(&datum));
    printf("%d %d %d\n", is_before_end((void *)table[opaque(1)]), is_before_end((void *)taken), is_before_end(&datum));
    printf("%d %d\n", is_data((void *)taken), is_data(&datum));
    printf("%u %u %u %08x\n", table[opaque(0)](1), table[opaque(1)](2), taken(3), never_taken(opaque(8)));
    return 0;
}
