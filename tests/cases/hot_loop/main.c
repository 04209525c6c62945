/* A workload whose counts are known: a sieve, a sort and a rarely taken path, called a counted number of times. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void rare(unsigned n, unsigned *sum) { *sum = mix(*sum, n); }
NOINLINE unsigned sieve(unsigned limit) {
    static unsigned char composite[2000];
    unsigned count = 0;
    memset(composite, 0, sizeof composite);
    for (unsigned i = 2; i < limit; i++) {
        if (composite[i])
            continue;
        count++;
        for (unsigned j = i * i; j < limit; j += i)
            composite[j] = 1;
    }
    return count;
}
NOINLINE void sort(unsigned *values, int low, int high) {
    if (low >= high)
        return;
    unsigned pivot = values[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (values[i] < pivot)
            i++;
        while (values[j] > pivot)
            j--;
        if (i <= j) {
            unsigned t = values[i];
            values[i++] = values[j];
            values[j--] = t;
        }
    }
    sort(values, low, j);
    sort(values, i, high);
}
NOINLINE unsigned round_trip(unsigned n) {
    unsigned values[500], sum = sieve(2000);
    for (unsigned i = 0; i < 500; i++)
        values[i] = (i * 7919u + n) % 1009;
    sort(values, 0, 499);
    for (unsigned i = 0; i < 500; i++) {
        sum = mix(sum, values[i]);
        if (__builtin_expect(values[i] == 13, 0))
            rare(i, &sum);
    }
    return sum;
}

int main(void) {
    unsigned sum = 33;
    for (unsigned i = 0; i < 50; i++)
        sum = mix(sum, round_trip(i));
    printf("%08x %u\n", sum, sieve(100));
    return 0;
}
