#include "case.h"
unsigned far_variable = 77;
NOINLINE unsigned far_away(unsigned x) {
    far_variable += x;
    return x * 11;
}
