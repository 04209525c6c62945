// A shared object with some work to do, and cold code in between. NAME is its function; NEEDS one of another object, if any.
#include <stdio.h>
#include <stdlib.h>

#ifdef NEEDS
int NEEDS(int n);
#else
#define NEEDS(n) (n)
#endif

static unsigned state = 1;

__attribute__((noinline)) static int seldom(int n) {
    if (n < 0) {
        fprintf(stderr, "negative\n");
        abort();
    }
    return n ^ 0x55;
}

__attribute__((noinline)) static int step(int n) {
    state = state * 1103515245u + 12345u;
    if ((state >> 16) % 64 == 0)
        return seldom(n);
    return n + (int)(state >> 24);
}

int NAME(int n) {
    int sum = NEEDS(1);
    for (int i = 0; i < n; i++)
        sum = (sum ^ step(i)) & 0xffffff;
    return sum;
}
