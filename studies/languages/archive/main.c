/* A C program with a Go archive linked into it. */
#include "archive.h"
#include <stdio.h>
#include <stdlib.h>

static unsigned step(unsigned sum, unsigned with) {
    switch (with % 6) {
    case 0: return sum * 3;
    case 1: return sum ^ with;
    case 2: return sum + with;
    case 3: return sum - with;
    case 4: return sum * with + 1;
    default: return ~sum;
    }
}

int main(void) {
    unsigned sum = 1;
    for (int i = 0; i < 12; i++) {
        char *text = describe(i);
        for (const char *c = text; c && *c; c++)
            sum = step(sum, (unsigned char)*c);
        printf("%d %s %08x\n", i, text ? text : "nothing", sum);
        free(text);
    }
    return 0;
}
