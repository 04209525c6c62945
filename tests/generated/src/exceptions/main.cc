#include "program.h"

thread_local int fuel;
thread_local unsigned trace;

Careful::~Careful() {
    try {
        if (key & 1)
            throw key;
        happens(key);
    } catch (unsigned v) {
        happens(v * 9);
    }
}

static thread_local unsigned made;
Touchy::Touchy(unsigned k) : key(k) {
    if (k % 3 == 0)
        throw Base(k);
    happens(k);
}
Touchy::Touchy() : key(made++) {
    if (key % 4 == 3)
        throw Wide(key);
    happens(key);
}

// What is handled at the moment, thrown again from another function.
unsigned again(unsigned x) {
    if (std::current_exception())
        throw;
    return x;
}

struct Task {
    function *f;
    unsigned x, trace;
};

static void ended(void *p) { happens((unsigned)(uintptr_t)p); }

static void *task_main(void *p) {
    Task *task = static_cast<Task *>(p);
    fuel = 12;
    trace = task->x;
    unsigned result = 0;
    // A thread that ends itself is unwound, and a handler of everything must pass that on.
    pthread_cleanup_push(ended, (void *)(uintptr_t)task->x);
    try {
        Guard guard(task->x);
        try {
            result = task->f(task->x);
        } catch (const Base &e) {
            result = e.get();
        } catch (...) {
            result = 7;
        }
        if (result & 1) {
            task->trace = trace;
            pthread_exit((void *)(uintptr_t)result);
        }
    } catch (Wide &w) {
        result = w.values[0];
    }
    pthread_cleanup_pop(1);
    task->trace = trace;
    return (void *)(uintptr_t)result;
}

unsigned in_thread(function *f, unsigned x) {
    static int times;
    if (times++ > 4)
        return x;
    pthread_t thread;
    Task task = {f, x, 0};
    void *result;
    if (pthread_create(&thread, NULL, task_main, &task))
        abort();
    pthread_join(thread, &result);
    happens(task.trace);
    return (unsigned)(uintptr_t)result;
}

static void terminated() {
    _exit(16 + trace % 48);
}

#if __cplusplus < 201703L
static void unexpected() {
    happens(77);
    if (trace & 1)
        throw 5;
    throw;
}
#endif

// In a process of its own, as it may well end it.
unsigned in_child(function *f, unsigned x) {
    static int times;
    if (times++ > 4)
        return x;
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        std::set_terminate(terminated);
        _exit(f(x) & 15);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid)
        abort();
    return x + (unsigned)status;
}

extern function *const functions[];
extern const unsigned count;

static unsigned guarded(function *f, unsigned x) {
    try {
        return f(x);
    } catch (const Left &e) {
        return e.get() + 1;
    } catch (const Base &e) {
        return e.get() + 2;
    } catch (const std::runtime_error &e) {
        return std::strlen(e.what()) + 3;
    } catch (const std::exception &) {
        return 4;
    } catch (unsigned v) {
        return v + 5;
    } catch (...) {
        return 6;
    }
}

int main() {
#if __cplusplus < 201703L
    std::set_unexpected(unexpected);
#endif
    unsigned sum = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (unsigned round = 0; round < 12; round++) {
        for (unsigned i = 0; i < count; i++) {
            fuel = 25;
            sum = mix(sum, guarded(functions[i], sum));
            sum = mix(sum, trace);
            if (round == 0)
                printf("%u %08x\n", i, sum);
        }
        printf("round %u %08x\n", round, sum);
    }
    return sum & 63;
}
