/* The rows of `first`, which begin the table of lines, name no file; those of `work`, behind another file's, do. Its call begins a row. */
#include <stdio.h>
long base = 5;
__attribute__((noinline)) long first(long x) { return x * 3; }
#include "first_of_table.h"
__attribute__((noinline)) long work(long x) {
    return first(x) + 1;
}
int main(void) { printf("%ld\n", work(second(base))); return 0; }
