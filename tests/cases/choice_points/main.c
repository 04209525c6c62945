/* A choice between labels whose addresses are taken by code that has no sizes. */
#include "case.h"
#include <stdio.h>

int one_of(int x);

static const void *remembered;
static int times;

NOINLINE const void *choose(const void *first, const void *second, const void *third, int x) {
    return x % 3 == 0 ? first : x % 3 == 1 ? second : third;
}

NOINLINE void remember(const void *place) {
    remembered = place;
    times++;
}

NOINLINE void forget(void) { remembered = NULL; }
NOINLINE int twice(int x) { return 2 * x + times; }
NOINLINE int thrice(int x) { return 3 * x - times; }

int main(void) {
    for (int x = 0; x < 6; x++) printf("%d\n", one_of(x));
    printf("%d %d\n", times, remembered != NULL);
    forget();
    printf("%d\n", remembered != NULL);
    return 0;
}
