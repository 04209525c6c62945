/* Functions with frames, that call others, return early, leave by a tail call, and loop: for code in place of calls. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline, noclone, noipa))

static long total;

OWN static long twice(long a) { return 2 * a; }

OWN static long add(long a, long b) {
    if (a < 0) return twice(b);
    total += a;
    return a + b;
}

OWN static long keeps(long a, long b) {
    long c = add(a, b), d = twice(a);
    if (c > 90) total += add(d, c);
    return c * d + b;
}

OWN static long fills(long n) {
    char text[48];
    memset(text, 'a' + n % 20, sizeof text);
    text[n % 47] = 0;
    return (long)strlen(text) + add(n, text[3]);
}

OWN static long loops(const long *from, long count) {
    long sum = 0;
    for (long i = 0; i < count; i++)
        if (from[i] & 1) sum += from[i];
        else if (from[i] > 40) sum -= twice(sum);
    return sum;
}

OWN static long many(long a, long b, long c, long d, long e, long f, long g, long h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

OWN static long deep(long n) { return n <= 0 ? total : deep(n - 1) + keeps(n, n & 3); }

OWN static void notes(const char *text, long n) {
    if (n % 5 == 0) {
        printf("%s %ld\n", text, n);
        return;
    }
    total ^= n;
}

int main(int argc, char **argv) {
    (void)argv;
    long numbers[20], sum = 0;
    for (long i = 0; i < 20; i++) numbers[i] = (i * 37 + argc) % 61;
    for (long i = -3; i < 30; i++) {
        sum += keeps(i, i + 1);
        sum ^= fills(i + 3);
        sum += loops(numbers, 20);
        sum -= many(i, 1, 2, 3, 4, 5, i, 7);
        notes("at", i);
        sum += add(i, sum & 7);
    }
    sum += deep(9);
    notes("end", sum * 5);
    printf("%ld %ld\n", sum, total);
    return 0;
}
