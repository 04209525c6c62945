/* Tables of distances, each word counted from itself. Those of four bytes follow their functions; what those of eight
   bytes name stays. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>

typedef unsigned function(unsigned);
extern const int32_t narrow[4];
extern const int64_t wide[2];

NOINLINE static function *of_narrow(unsigned i) { return (function *)((uintptr_t)&narrow[i] + narrow[i]); }
NOINLINE static function *of_wide(unsigned i) { return (function *)((uintptr_t)&wide[i] + wide[i]); }

int main(void) {
    printf("%u %u %u\n", of_narrow(opaque(0))(5), of_narrow(opaque(1))(5), of_narrow(opaque(2))(5));
    printf("%u %u\n", of_wide(opaque(0))(7), of_wide(opaque(1))(7));
    return 0;
}
