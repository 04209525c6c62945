/* Calls that are not reached when one before them in the same block throws, counted: each function knows how often it ran. */
#include "case.h"
#include <cstdio>
static unsigned sum;
struct Noted { unsigned what; ~Noted() { sum = mix(sum, what); } };
extern "C" {
NOINLINE void first(unsigned n) { sum = mix(sum, n); if (n % 3 == 0) throw n; }
NOINLINE void second(unsigned n) { sum = mix(sum, n + 1); if (n % 5 == 0) throw 1.5; }
NOINLINE void third(unsigned n) { sum = mix(sum, n + 2); }
NOINLINE void guarded(unsigned n) { Noted noted{n}; first(n); second(n); third(n); }
NOINLINE void plain(unsigned n) { first(n); second(n); sum++; }
}
int main() {
    for (unsigned n = 0; n < 60; n++) {
        try { guarded(n); } catch (unsigned) { sum++; } catch (double) { sum += 2; }
        try { plain(n); } catch (...) { sum += 3; }
    }
    std::printf("%08x\n", sum);
}
