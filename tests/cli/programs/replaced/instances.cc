/* Instances of templates that are the same, and functions of a namespace. */
#include <cstdio>

#define NOINLINE __attribute__((noinline))

static volatile long seen;

template <class T> NOINLINE T twice(T x)
{
	for (int i = 0; i < 3; i++)
		seen += x;
	return x * 2;
}

template <class T> struct Box {
	T x;
	NOINLINE T sum(T y) const
	{
		T sum = 0;
		for (int i = 0; i < 3; i++) {
			seen += y;
			sum += x + y;
		}
		return sum;
	}
};

namespace names {
NOINLINE static long one(long a)
{
	seen += a;
	seen += 3;
	return a + 2;
}

NOINLINE static long two(long b)
{
	seen += b;
	seen += 3;
	return b + 2;
}
}

int main()
{
	Box<long> a{ seen + 1 };
	Box<long long> b{ seen + 2 };
	printf("%ld %lld\n", a.sum(seen), b.sum(seen));
	printf("%ld %lld\n", twice(seen + 0), twice(seen + 0LL));
	printf("%ld\n", names::one(seen) + names::two(seen));
	return 0;
}
