/* Functions that run for ever on one of their ways, by a jump to itself and by two. */
#include <stdio.h>

#define OWN __attribute__((noipa))

OWN static int stops(int x)
{
	if (x > 1000)
		for (;;)
			;
	return 3 * x + 1;
}

OWN static int turns(int x)
{
	if (x > 2000)
		__asm__ volatile("1: jmp 2f\n 2: jmp 1b");
	return x - 4;
}

OWN static int both(int x)
{
	return stops(x) ^ turns(x + 1);
}

int main(void)
{
	int sum = 0;
	for (int i = 0; i < 90; i++)
		sum += both(i) + stops(i);
	printf("%d\n", sum);
	return 0;
}
