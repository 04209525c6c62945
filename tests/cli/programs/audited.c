// Calls functions of the C library again and again, so that an auditor can count.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static long work(const char *text) {
    char copy[64];
    strcpy(copy, text);
    return strtol(copy, NULL, 10) + labs(-atol(text)) + (long)strnlen(text, 8);
}

int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < 5; i++)
        sum += work(argc > 1 ? argv[1] : "1234");
    return write(1, sum == 5 * (2 * 1234 + 4) ? "right\n" : "wrong\n", 6) != 6;
}
