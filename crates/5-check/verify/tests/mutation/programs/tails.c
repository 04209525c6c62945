/* Small blocks that end functions, or jump on, and that several ways lead to: a table, a branch, and the block in front. */
#include <stdio.h>

#define APART __attribute__((noinline, noclone))

APART static long cases(int kind, long *at) {
    switch (kind) {
    case 0: at[0] += 3; break;
    case 1: at[1] ^= at[0]; break;
    case 2: if (at[0] > 7) at[0] -= 5; /* falls through */
    case 3: at[2] += 9; return at[2];
    case 4: if (at[1] & 1) at[1]++; /* falls through */
    case 5: at[0] = at[1] + 4; return at[0];
    case 6: at[2] -= 2; break;
    case 7: at[1] += at[2]; break;
    default: return -1;
    }
    at[3]++;
    return at[3];
}

APART static long (*chosen(int kind, long (*first)(long), long (*second)(long)))(long) {
    return kind & 1 ? first : second;
}

APART static long twice(long n) { return n * 2; }
APART static long thrice(long n) { return n * 3; }

/* Ends in an indirect jump, to which both ways lead. */
APART static long jumps(int kind, long n, long (*next)(long)) {
    if (kind > 3)
        n += kind * 7;
    else if (kind > 1)
        n ^= kind << 4;
    else
        n -= 5;
    return next(n);
}

/* Ends in a jump to another function. */
APART static long leaves(int kind, long n) {
    if (n > kind)
        n -= kind * 3;
    else if (n & 2)
        n |= kind;
    return thrice(n);
}

APART static long loops(long n) {
    long sum = 0;
    while (n > 0) {
        if (n & 1) {
            sum += n;
            n -= 3;
            continue;
        }
        if (n % 3 == 0) {
            sum ^= n;
            n -= 2;
            continue;
        }
        n--;
    }
    return sum;
}

int main(void) {
    long at[4] = {1, 2, 3, 4}, sum = 0;
    for (int i = 0; i < 64; i++) {
        sum += cases(i & 7, at) * 31 + jumps(i & 5, sum, chosen(i, twice, thrice));
        sum ^= leaves(i & 3, sum) + loops(i);
    }
    printf("%ld %ld\n", sum, at[3]);
    return 0;
}
