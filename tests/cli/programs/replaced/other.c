#include "other.h"

unsigned mixed(unsigned a, unsigned b)
{
	return a ^ b << 3;
}

static volatile int apart;

int other_sum(int k)
{
	apart = k;
	return k + (int)mixed(k, 9);
}
