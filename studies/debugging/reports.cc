// A program that shows its own stack in every way that programs have, breaks memory for valgrind, throws, and at last aborts.
#include <backtrace.h>
#include <execinfo.h>
#include <stdexcept>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

volatile int sink;
int watched;

static int frame(void *, uintptr_t, const char *file, int line, const char *function) {
    std::printf("  %s %s:%d\n", function ? function : "?", file ? file : "?", line);
    return 0;
}

static void failed(void *, const char *what, int) { std::printf("  libbacktrace: %s\n", what); }

[[gnu::noinline, gnu::noclone]] void by_libbacktrace(const char *where) {
    static backtrace_state *state = backtrace_create_state(nullptr, 0, failed, nullptr);
    std::printf("libbacktrace in %s\n", where);
    backtrace_full(state, 0, frame, failed, nullptr);
}

[[gnu::noinline, gnu::noclone]] void by_glibc(const char *where) {
    void *frames[16];
    int number = backtrace(frames, 16);
    char **names = backtrace_symbols(frames, number);
    std::printf("backtrace_symbols in %s\n", where);
    for (int i = 0; i < number; i++) std::printf("  %s\n", names[i]);
    std::free(names);
}

struct Guard {
    std::string name;
    ~Guard() { sink = sink + static_cast<int>(name.size()); }
};

static inline int read_freed(int at) {
    int *data = static_cast<int *>(std::malloc(64));
    std::memset(data, at, 64);
    std::free(data);
    return *static_cast<volatile int *>(data + at % 16);  // memcheck: invalid read, and where it was freed
}

[[gnu::noinline]] int deepest(int kind, const std::vector<int> &values) {
    Guard guard{"deepest" + std::to_string(kind)};
    switch (kind % 7) {
    case 0: by_libbacktrace("case 0"); return values.at(0);
    case 1: by_glibc("case 1"); return values.at(1) + sink;
    case 2: if (std::getenv("BREAK_MEMORY")) sink = sink + read_freed(kind); return 2;
    case 3: return values.at(100);
    case 4: throw std::runtime_error(guard.name);
    case 5: watched += kind; by_libbacktrace("case 5"); return watched;
    default: if (sink == 123456) std::puts("never"); return static_cast<int>(guard.name.size());
    }
}

[[gnu::noinline]] int middle(int kind, std::vector<int> values) {
    values.push_back(kind);
    int sum = 0;
    for (int value : values) {
        if (value % 3 == 0) sum += value; else if (value % 5 == 0) sum -= value; else sum ^= value;
        watched += value & 1;
    }
    try {
        return sum + deepest(kind, values);
    } catch (const std::out_of_range &) {
        by_libbacktrace("a handler");
        return -sum;
    }
}

[[gnu::noinline]] int outermost(int kind) {
    std::vector<int> values;
    for (int i = 0; i < 5 + kind; i++) values.push_back(i * kind);
    return middle(kind, values) + 1;
}

int main(int count, char **) {
    int all = 0;
    for (int kind = 0; kind < 14; kind++) {
        try {
            all += outermost(kind);
        } catch (const std::exception &error) {
            std::printf("caught %s\n", error.what());
            by_libbacktrace("main's handler");
        }
    }
    std::printf("%d\n", all);
    std::fflush(stdout);
    if (count > 1) std::abort();
    return 0;
}
