/* Threads that are unwound: cancelled, left by pthread_exit, with thread_local objects whose destructors throw and catch. */
#include "case.h"
#include <atomic>
#include <cstdio>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<unsigned> sum{0};
struct Noted {
    unsigned what;
    ~Noted() { sum += what; }
};
NOINLINE void throws(unsigned x) {
    Noted noted{1};
    if (opaque(x) % 2)
        throw std::runtime_error("odd");
}
struct Local {
    unsigned what = 1000;
    ~Local() {
        try {
            Noted noted{10};
            throws(what + 1);
        } catch (const std::exception &e) {
            sum += e.what()[0];
        }
    }
};
static thread_local Local local;

static int ready[2];
NOINLINE void wait_for_ever(int end) {
    Noted noted{100};
    char byte = 0;
    for (;;) {
        throws(local.what);
        if (write(ready[1], &byte, 1) != 1 || read(end, &byte, 1) != 1)
            return;
    }
}
NOINLINE void deeper(unsigned depth, int end) {
    Noted noted{2000};
    if (depth > 0)
        deeper(depth - 1, end);
    else
        wait_for_ever(end);
    sum += 1;
}
static void *cancelled(void *argument) {
    Noted noted{30000};
    try {
        deeper(5, *static_cast<int *>(argument));
    } catch (const std::exception &) {
        sum += 7;
    } catch (...) {
        sum += 500000;
        throw;
    }
    return nullptr;
}
NOINLINE void leave(unsigned depth) {
    Noted noted{3};
    if (opaque(depth) == 0)
        pthread_exit(&sum);
    leave(depth - 1);
    sum += 1;
}
static void *left(void *) {
    local.what += 2;
    try {
        leave(4);
    } catch (...) {
        sum += 40;
        throw;
    }
    return nullptr;
}

int main() {
    for (unsigned round = 0; round < 3; round++) {
        int ends[2];
        if (pipe(ends) != 0)
            return 1;
        pthread_t thread;
        char byte;
        if (pipe(ready) != 0)
            return 1;
        pthread_create(&thread, nullptr, cancelled, &ends[0]);
        if (write(ends[1], "a", 1) != 1 || read(ready[0], &byte, 1) != 1 || read(ready[0], &byte, 1) != 1)
            return 2;
        pthread_cancel(thread);
        void *result;
        pthread_join(thread, &result);
        std::printf("%d %u\n", result == PTHREAD_CANCELED, sum.load());
        pthread_create(&thread, nullptr, left, nullptr);
        pthread_join(thread, &result);
        std::printf("%d %u\n", result == &sum, sum.load());
    }
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++)
        threads.emplace_back([i] {
            for (unsigned j = 0; j < 100; j++) {
                try {
                    Noted noted{1};
                    throws(i + j);
                } catch (...) {
                    sum += 2;
                }
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("%u\n", sum.load());
}
