/* Exceptions through C++ code, and with an argument through a function of assembly, too. */
#include <cstdio>

extern "C" int through(int (*callee)(int), int value);

__attribute__((noinline)) static int fails(int value) {
    if (value % 3 == 0)
        throw value;
    return value + 1;
}

__attribute__((noinline)) static int sum_of(int (*calling)(int)) {
    int sum = 0;
    for (int i = 0; i < 1000; i++) {
        try {
            sum += calling(i);
        } catch (int value) {
            sum += 2 * value;
        }
    }
    return sum;
}

static int direct(int value) { return fails(value); }
static int by_assembly(int value) { return through(fails, value); }
static int plain(int value) { return value - 1; }

int main(int argc, char **) {
    std::printf("%d %d\n", through(plain, argc), sum_of(direct));
    if (argc > 1)
        std::printf("%d\n", sum_of(by_assembly));
    return 0;
}
