/* Functions that are the same, with blocks, inlined calls, calls and labels in them. */
#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif

static volatile int seen, most = 4;

NOINLINE static int step(int x)
{
	seen += x;
	return seen;
}

static inline __attribute__((always_inline)) int bounded(int x)
{
	if (x > 50) {
		int over = step(x) - 50;
		seen -= over;
		return 50;
	}
	return x;
}

#define TWIN(name)                                      \
	NOINLINE static int name(const int *from, int n)   \
	{                                               \
		int sum = 0;                            \
		for (int i = 0; i < n; i++) {           \
			int one = bounded(from[i]);     \
			if (one & 1) {                  \
				int two = step(one);    \
				if (two < 0)            \
					goto out;       \
				sum += two;             \
			}                               \
			sum += one;                     \
		}                                       \
	out:                                            \
		return sum + seen;                      \
	}

TWIN(first)
TWIN(second)
TWIN(third)

int main(void)
{
	int all[] = { 1, 60, 3, 40 };
	int sum = first(all, most) + second(all, most) + third(all, most);
	return sum == 0;
}
