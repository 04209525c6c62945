/* Objects of their own that the compiler puts one behind the other, and whose functions ascend from the first object to the last. */
#include "infos.h"

#define FUNCTIONS(n)                                                                   \
    NOINLINE static unsigned profile##n(unsigned x) { return mix(x, 3 * n + 1); }      \
    NOINLINE static unsigned equals##n(unsigned x) { return mix(x + 5, 7 * n + 2); }   \
    NOINLINE static unsigned hash##n(unsigned x) { return mix(x ^ 9, 11 * n + 3); }     \
    NOINLINE static unsigned again##n(unsigned x) { return mix(x, x + n); }
#if defined(__clang__)
#define IN_ORDER
#else
#define IN_ORDER __attribute__((no_reorder))
#endif
#define INFO(n) const IN_ORDER struct info info##n = {profile##n, equals##n, hash##n, again##n};

FUNCTIONS(0)
FUNCTIONS(1)
FUNCTIONS(2)
FUNCTIONS(3)
INFO(0)
INFO(1)
INFO(2)
INFO(3)
