// A program of two files with code that is inlined, jump tables, and locals that live in several places.
#include <stdio.h>
#include <stdlib.h>

struct pair {
    long first;
    long second;
};

long work(struct pair *pair, int kind);

static inline long twice(long value) {
    long sum = value + value;
    if (sum > 1000000)
        sum %= 1000003;
    return sum;
}

__attribute__((noinline)) static long choose(int kind, long value) {
    switch (kind) {
    case 0:
        return value + 3;
    case 1:
        return value * 7;
    case 2:
        return twice(value) - 1;
    case 3:
        abort();
    case 4:
        return value ^ 0x55;
    default:
        return twice(value + kind);
    }
}

int main(int argc, char **argv) {
    struct pair pair = {argc, 2};
    (void)argv;
    long sum = 0;
    for (int i = 0; i < 50; i++) {
        int kind = i % 7 == 3 ? 0 : i % 7;
        long value = choose(kind, sum + i);
        if (value % 11 == 0)
            printf("%ld at %d\n", value, i);
        pair.first = value;
        sum = work(&pair, kind) % 100003;
    }
    printf("%ld\n", sum);
    return 0;
}
