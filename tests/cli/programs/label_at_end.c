// A label, which the test has stand where the function's hot part ends.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) int work(int n) {
    if (n > 40)
        goto failed;
    return n * 7;
failed:
    abort();
}

__attribute__((noinline)) int other(int n) {
    return n * 5 + 1;
}

int main(int count, char **words) {
    (void)words;
    printf("%d %d\n", work(count), other(count));
    return 0;
}
