/* Calls of functions that return by a jump. */
#include "case.h"
#include <stdio.h>

int clamped(int x), scaled(int x, int more);

NOINLINE int sum(int count) {
    int all = 0;
    for (int x = 0; x < count; x++) all += clamped(x) + scaled(x, count & 1);
    return all;
}

int main(void) {
    for (int count = 1; count < 40; count += 7) printf("%d\n", sum(count));
    return 0;
}
