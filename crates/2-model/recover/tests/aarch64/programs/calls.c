// Calls, tail calls, function pointers, thread-local and global data, a fragment for what is unlikely.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int small(int);
int medium(int, int);
int large(int, unsigned);
int machine(const unsigned char *);
int pool(int);

__thread int local = 3;
static long long table[8] = {1, 2, 3};
static char name[32];
short halves[5] = {1, 2, 3, 4, 5};
double number = 1.5;
typedef int (*function)(int);

__attribute__((noinline)) int work(int x) { return x * 5 + local + halves[x & 3] + (int)number; }
__attribute__((noinline)) static int twice(int x) { return work(x) + work(x + 1); }
static function functions[] = {work, twice, small};

__attribute__((noinline)) int by_pointer(int i, int x) { return functions[i % 3](x) + 1; }
__attribute__((noinline)) int by_pointer_last(int i, int x) { return functions[i % 3](x); }
__attribute__((noinline)) int chosen(int x, function f) { return x > 3 ? work(x) : f(x); }
__attribute__((noinline)) function pick(int x) { return x ? work : twice; }

__attribute__((noinline)) int unlikely(int x) {
    if (__builtin_expect(x == 1234, 0)) {
        fprintf(stderr, "unlikely %d %s\n", x, name);
        abort();
    }
    return (int)table[x & 7] + x;
}

__attribute__((noinline)) int bits(unsigned long x) {
    int n = 0;
    for (; x; x >>= 1)
        if (x & 1) n += x & (1ul << 40) ? 2 : 1;
    if (n & 0x10) sprintf(name, "%d", n);
    return n;
}

int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 12 * argc; i++) {
        sum += small(i) + medium(i, i + 10) + by_pointer(i, i) + by_pointer_last(i, i) + pool(i);
        sum += chosen(i, pick(i & 1)) + unlikely(i) + bits(i * 77) + (int)strlen(name);
        local += i;
    }
#ifdef LARGE
    sum += large(sum, argc);
#endif
    sum += machine((const unsigned char *)"abcdefghgagbgc");
    printf("%d %d\n", sum, local);
    return 0;
}
