/* Coroutines: their frames hold pointers to the parts that go on and that clean up. Generators, one that is dropped in the middle, an
   exception that passes through several, and control that is handed from one to another. */
#include "case.h"
#include <coroutine>
#include <cstdio>
#include <exception>
#include <utility>

static unsigned dropped;
struct Counted {
    ~Counted() { dropped++; }
};

struct Generator {
    struct promise_type {
        unsigned value = 0;
        std::exception_ptr error;
        Generator get_return_object() { return Generator{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(unsigned v) noexcept {
            value = v;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { error = std::current_exception(); }
    };
    std::coroutine_handle<promise_type> handle;
    explicit Generator(std::coroutine_handle<promise_type> h) : handle(h) {}
    Generator(Generator &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    ~Generator() {
        if (handle)
            handle.destroy();
    }
    bool next() {
        handle.resume();
        if (handle.promise().error)
            std::rethrow_exception(std::exchange(handle.promise().error, nullptr));
        return !handle.done();
    }
    unsigned value() const { return handle.promise().value; }
};

NOINLINE static Generator count(unsigned from, unsigned to) {
    Counted counted;
    for (unsigned i = from; i < to; i++)
        co_yield i *i;
}

NOINLINE static Generator odd(unsigned to, unsigned fails_at) {
    Counted counted;
    Generator all = count(0, to);
    while (all.next()) {
        if (all.value() > fails_at)
            throw all.value();
        if (all.value() % 2)
            co_yield all.value();
    }
    co_yield 1000;
}

/* Hands control to another coroutine each time, without a deeper stack. */
struct Turn {
    struct promise_type {
        Turn get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};
static std::coroutine_handle<> players[2];
struct ToOther {
    unsigned own;
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept { return players[1 - own]; }
    void await_resume() const noexcept {}
};
static unsigned score;
NOINLINE static Turn play(unsigned own, unsigned turns) {
    for (unsigned i = 0; i < turns; i++) {
        score = score * 3 + own;
        if (i + 1 < turns || own == 0)
            co_await ToOther{own};
    }
}

int main() {
    unsigned sum = 0;
    for (unsigned i = 0; i < 50; i++) {
        Generator values = odd(opaque(i), opaque(900));
        try {
            for (unsigned n = 0; n < 12 && values.next(); n++)
                sum = sum * 31 + values.value();
        } catch (unsigned value) {
            sum += value;
        }
    }
    Turn first = play(0, opaque(1000)), second = play(1, 1000);
    players[0] = first.handle;
    players[1] = second.handle;
    first.handle.resume();
    first.handle.destroy();
    second.handle.destroy();
    std::printf("%u %u %u\n", sum, dropped, score);
    return 0;
}
