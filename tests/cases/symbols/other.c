#include "case.h"
typedef unsigned function(unsigned);
NOINLINE unsigned replaced(unsigned x) { return x * 5 + 1; }
static NOINLINE unsigned local(unsigned x) { return x * 17; }
extern function *const other_local;
function *const other_local = local;
