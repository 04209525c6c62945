/* Frames of every usual shape. Prints a number that depends on each of them. */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static volatile int sink;
static volatile sig_atomic_t caught;

__attribute__((noinline)) long many_args(long a, long b, long c, long d, long e, long f, long g, long h, long i) {
    sink = (int)(a ^ b ^ c);
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}

__attribute__((noinline)) long with_alloca(int n) {
    char *p = alloca(n);
    memset(p, n, n);
    return many_args(p[0], n, p[n - 1], 4, 5, 6, 7, 8, 9);
}

__attribute__((noinline)) long aligned_alloca(int n) {
    _Alignas(64) char room[128];
    char *p = alloca(n);
    memset(room, n, sizeof room);
    memset(p, 1, n);
    return many_args(room[3], p[0], (long)room & 63, 4, 5, 6, 7, 8, 9);
}

__attribute__((noinline)) long variadic(int n, ...) {
    va_list list;
    long sum = 0;
    va_start(list, n);
    for (int i = 0; i < n; i++)
        sum += va_arg(list, long);
    va_end(list);
    return sum;
}

__attribute__((noinline)) long big_frame(int n) {
    long table[5000];
    for (int i = 0; i < 5000; i++)
        table[i] = i * n;
    sink = table[n];
    return variadic(4, table[1], table[2], table[3], table[4999]);
}

__attribute__((noinline)) long registers(long a, long b, long c, long d, long e, long f) {
    long s = 0;
    for (int i = 0; i < 10; i++) {
        long x = many_args(a, b, c, d, e, f, i, s, 1);
        if (x > 100000)
            return many_args(f, e, d, c, b, a, x, s, i);
        s += x;
        a ^= s, b += a, c ^= b, d += c, e ^= d, f += e;
    }
    return s;
}

__attribute__((noinline)) long early_out(long *p) {
    if (!p)
        return -1;
    long x = many_args(p[0], p[1], p[2], 1, 2, 3, 4, 5, 6);
    long y = with_alloca(16);
    if (x == y)
        __builtin_abort();
    return x * y;
}

static void handler(int signal) {
    (void)signal;
    caught++;
}

int main(void) {
    jmp_buf place;
    long three[3] = {1, 2, 3};
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    long sum = with_alloca(32) + aligned_alloca(48) + big_frame(7) + registers(1, 2, 3, 4, 5, 6);
    sum += early_out(three) + early_out(0) + caught;
    if (!setjmp(place))
        longjmp(place, 1);
    printf("%ld\n", sum);
    return 0;
}
