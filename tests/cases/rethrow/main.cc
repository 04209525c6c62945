/* C++ in one file with its unwinder: exceptions thrown through, caught, and thrown again. `_Unwind_Resume_or_Rethrow`, moved
   like any other code of the library, keeps its return address in a register in one row and on the stack in the next. */
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace {
int cleaned;
struct Cleaned {
    int by;
    ~Cleaned() { cleaned += by; }
};
}

#define NOINLINE __attribute__((noinline))

NOINLINE void throws(int x) {
    Cleaned cleaned{1};
    if (x % 3 == 0)
        throw x;
    if (x % 3 == 1)
        throw std::runtime_error("one");
}

/* No landing pad: moved, and unwound through. */
NOINLINE int between(int x) {
    volatile int room[20];
    room[x] = x;
    throws(x);
    return room[x] + 1;
}

NOINLINE void again(int x) {
    try {
        Cleaned cleaned{10};
        between(x);
    } catch (...) {
        cleaned += 100;
        throw;
    }
}

NOINLINE void once_more(int x) {
    std::exception_ptr kept;
    try {
        again(x);
    } catch (...) {
        kept = std::current_exception();
    }
    if (kept)
        std::rethrow_exception(kept);
}

int main() {
    int sum = 0;
    for (int i = 0; i < 9; i++) {
        try {
            once_more(i);
            sum += 1000;
        } catch (int value) {
            sum += value;
        } catch (const std::exception &) {
            sum += 100;
        }
    }
    std::printf("%d %d\n", sum, cleaned);
}
