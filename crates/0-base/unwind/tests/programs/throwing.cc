// Exceptions through frames of several shapes, with clean-ups, filters and rethrowing.
#include <alloca.h>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

static int cleaned;
struct Guard {
    std::string name;
    explicit Guard(const char *n) : name(n) {}
    ~Guard() { cleaned += (int)name.size(); }
};

__attribute__((noinline)) void throws(int depth, long, long, long, long, long, long stack1, long stack2) {
    Guard guard("one");
    if (depth == 0)
        throw std::runtime_error("deep " + std::to_string(stack1 + stack2));
    char *room = static_cast<char *>(alloca(depth * 8));
    std::memset(room, depth, depth * 8);
    throws(depth - 1, 1, 2, 3, 4, 5, stack1 + room[0], stack2);
    Guard after("never");
}

__attribute__((noinline)) int rethrows(int depth) {
    alignas(64) char room[64];
    std::memset(room, 1, sizeof room);
    try {
        throws(depth, 1, 2, 3, 4, 5, room[7], 7);
    } catch (const std::logic_error &) {
        return -1;
    } catch (...) {
        Guard guard("three");
        throw;
    }
    return 0;
}

int main() {
    int total = 0;
    for (int depth = 0; depth < 6; depth++) {
        try {
            total += rethrows(depth);
        } catch (const std::exception &e) {
            std::printf("%d %s\n", depth, e.what());
        }
        try {
            std::vector<int> v(depth);
            total += v.at(depth + 1);
        } catch (const std::out_of_range &) {
            total++;
        }
    }
    std::printf("%d %d\n", total, cleaned);
}
