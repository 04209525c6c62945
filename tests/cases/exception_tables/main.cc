/* Functions with hand-written tables of exceptions (tables.S). */
#include "case.h"
#include <cstdio>
#include <unwind.h>

extern "C" {
int with_base(int (*)(int), int);
int with_words(int (*)(int), int);
int with_rows(int (*)(int), int);
int with_own(int (*)(int), int);
extern char own_pad[];

/* Looks at its function alone: every exception is caught, by the address of the pad. */
_Unwind_Reason_Code own_personality(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception *thrown,
                                    _Unwind_Context *context) {
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    _Unwind_SetGR(context, 0, reinterpret_cast<_Unwind_Word>(thrown));
    _Unwind_SetGR(context, 1, 0);
    _Unwind_SetIP(context, reinterpret_cast<_Unwind_Ptr>(own_pad));
    return _URC_INSTALL_CONTEXT;
}
}

static unsigned sum;
struct Noted {
    unsigned what;
    ~Noted() { sum = mix(sum, what); }
};
NOINLINE int throws(int x) {
    Noted noted{static_cast<unsigned>(x)};
    switch (x % 4) {
    case 1: throw x;
    case 2: throw 1.5;
    case 3: throw "text";
    }
    return x * 10;
}
NOINLINE int tries(int (*f)(int (*)(int), int), int x) {
    try {
        Noted noted{7};
        return f(throws, x);
    } catch (int value) {
        return -value;
    } catch (...) {
        return -100;
    }
}

int main() {
    for (int x = 4; x < 8; x++) {
        const int found[] = {tries(with_base, x), tries(with_words, x), tries(with_rows, x), tries(with_own, x)};
        for (int value : found)
            std::printf("%d ", value);
        std::printf("%08x\n", sum);
    }
}
