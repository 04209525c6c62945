/* Tiny functions, of this unit and of another one, and functions that are the same. */
#include "other.h"
#include <stdio.h>

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif

static volatile int seen;

NOINLINE static int scaled(int x)
{
	int twice = x * 2;
	return twice + 7;
}

NOINLINE static int first_sum(int n)
{
	for (int i = 0; i < 3; i++)
		seen += n;
	return n + 40;
}

NOINLINE static int second_sum(int m)
{
	for (int j = 0; j < 3; j++)
		seen += m;
	return m + 40;
}

NOINLINE static int work(int n)
{
	int total = 0;
	for (int i = 0; i < n; i++) {
		total += scaled(i);
		if (total & 1)
			total = mixed(total, 5);
		else
			total -= 3;
	}
	return total + scaled(total);
}

int main(void)
{
	int sum = work(10);
	sum += first_sum(sum);
	sum += second_sum(sum);
	sum += other_sum(sum);
	printf("%d %d\n", sum, seen);
	return 0;
}
