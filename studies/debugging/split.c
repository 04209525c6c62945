// gcc itself puts `rare`'s calls apart, as middle.cold, and gdb 13 then finds neither middle in the stack nor what `a` was at the entry of last:
//     gcc -O2 -g -Wl,-q split.c -o split && gdb -batch -ex 'set print entry-values both' -ex 'break last' -ex run -ex bt split
// With -fno-reorder-blocks-and-partition, or when afterlink has put middle together (--order-blocks input --split none), it finds both.
#include <stdio.h>
volatile int sink;
__attribute__((cold, noinline, noclone)) void rare(int a) { printf("rare %d\n", a); }
__attribute__((noinline, noclone)) int last(int a) { sink += a; return sink * 3; }
__attribute__((noinline, noclone)) int middle(int a) {
    if (a == 77) { rare(a); rare(sink); sink = 5; rare(a + 3); }
    sink ^= a;
    return last(a + 1);
}
__attribute__((noinline, noclone)) int first(int a) { int r = middle(a * 2); return r + sink; }
int main(int c, char **v) { return first(c) & 1; }
