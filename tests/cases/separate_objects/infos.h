#include "case.h"

struct info {
    unsigned (*profile)(unsigned), (*equals)(unsigned), (*hash)(unsigned), (*again)(unsigned);
};
extern const struct info info0, info1, info2, info3;
