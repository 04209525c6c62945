/* References through the GOT: calls and loads that the linker turned into direct ones and left the old relocation at, and,
   with relaxing off or with library functions, slots that stay. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned far_away(unsigned x);
extern unsigned far_variable;
unsigned call_through_slot(unsigned x), jump_through_slot(unsigned x), load_slot(unsigned x), push_slot(unsigned x),
    two_entries(unsigned x), push_second_entry(unsigned x), compare_slot(unsigned (*f)(unsigned)), test_slot(void), add_slot(unsigned x);
typedef unsigned function(unsigned);
function *volatile taken;

NOINLINE unsigned near_by(unsigned x) { return far_away(x) ^ far_variable; }

int main(void) {
    unsigned sum = 20;
    taken = far_away;
    for (unsigned i = 0; i < 200; i++) {
        sum = mix(sum, near_by(sum));
        sum = mix(sum, call_through_slot(i));
        sum = mix(sum, jump_through_slot(sum));
        sum = mix(sum, load_slot(sum));
        sum = mix(sum, push_slot(i));
        sum = mix(sum, two_entries(sum) ^ push_second_entry(i));
        sum = mix(sum, add_slot(i));
        sum = mix(sum, compare_slot(taken) * 2 + compare_slot(near_by) + test_slot());
        sum = mix(sum, (unsigned)abs((int)sum));
        sum = mix(sum, (unsigned)strlen("through a slot") + far_variable);
    }
    printf("%d %08x\n", compare_slot(taken), sum);
    return 0;
}
