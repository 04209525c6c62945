/* Functions that are called through pointers: the one nearly always, the other now and then. */
#include <stdio.h>

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif

/* A function whose first instruction may raise a signal stays, if its address is known. */
#define FIRST(x) __asm__ volatile("addl $1, %0" : "+r"(x))

struct thing;
struct kind {
	int (*scale)(const struct thing *, int);
	int (*add)(struct thing *, int);
};
struct thing {
	const struct kind *kind;
	int size, sum;
};

NOINLINE static int twice(int x)
{
	return 2 * x + 1;
}

NOINLINE static int scaled(const struct thing *thing, int x)
{
	FIRST(x);
	if (x < 0)
		return twice(x) + thing->size;
	return thing->size * x + 3;
}

NOINLINE static int mixed(const struct thing *thing, int x)
{
	FIRST(x);
	return thing->size ^ x;
}

NOINLINE static int first_sum(struct thing *thing, int x)
{
	FIRST(x);
	thing->sum += twice(x) ^ twice(x + 5);
	return thing->sum;
}

NOINLINE static int second_sum(struct thing *thing, int x)
{
	FIRST(x);
	thing->sum -= x;
	return thing->sum;
}

static const struct kind kinds[] = {{scaled, first_sum}, {mixed, second_sum}};

NOINLINE static int work(struct thing *thing, int x)
{
	int all = thing->kind->scale(thing, x);
	all += thing->kind->add(thing, all & 15) + x;
	return all ^ x;
}

int main(int argc, char **argv)
{
	struct thing often = {&kinds[0], 5, 0}, seldom = {&kinds[1], 9, 1};
	int sum = 0;
	(void)argv;
	for (int i = 0; i < (argc > 1 ? 1000 : 6); i++)
		sum += work(&often, i);
	sum += work(&seldom, 7) + work(&often, -4);
	printf("%d\n", sum);
	return 0;
}
