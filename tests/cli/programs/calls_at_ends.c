// Calls through the linker's stubs that end a block: what comes next has other ways into it.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) long work(long n, long k) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        if (i % 3 == k) {
            putchar('a' + (int)(i % 26));
        } else if (i % 7 == k) {
            sum += labs(sum - i * rand());
            puts("");
        }
        sum ^= i;
    }
    return sum;
}

int main(int count, char **words) {
    (void)words;
    printf("%ld\n", work(40 + count, 1));
    return 0;
}
