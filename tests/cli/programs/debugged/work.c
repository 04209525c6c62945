// The second file of the program: a function with a loop, a rare path, and a call that comes back.
#include <stdio.h>

struct pair {
    long first;
    long second;
};

static long least(long a, long b) {
    return a < b ? a : b;
}

__attribute__((noinline)) static long report(const char *what, long value) {
    fprintf(stderr, "%s %ld\n", what, value);
    return value / 2;
}

long work(struct pair *pair, int kind) {
    long sum = 0;
    for (long i = 0; i < pair->second + kind; i++) {
        long part = least(pair->first, i * 17);
        if (part < 0)
            part = report("negative", part);
        sum += part ^ i;
    }
    pair->second = sum % 5 + 1;
    return sum + pair->first;
}
