// What every file of a program about exceptions begins with.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif
#if __cplusplus < 201703L
#define THROWS(...) throw(__VA_ARGS__)
#else
#define THROWS(...)
#endif
#define ARRAY(a) (sizeof(a) / sizeof *(a))
typedef unsigned function(unsigned);
static inline unsigned mix(unsigned sum, unsigned value) { return (sum ^ value) * 0x01000193u + (sum >> 13); }
static inline unsigned opaque(unsigned value) { __asm__ volatile("" : "+r"(value)); return value; }

// Calls that may still be made: functions call each other, and would never end.
extern thread_local int fuel;
// Everything that happens, in the order in which it does.
extern thread_local unsigned trace;
static inline void happens(unsigned what) { trace = mix(trace, what); }

struct Guard {
    unsigned key;
    explicit Guard(unsigned k) : key(k) { happens(k); }
    ~Guard() { happens(~key); }
};

// Its destructor has try and catch of its own, which run while another exception passes.
struct Careful {
    unsigned key;
    explicit Careful(unsigned k) : key(k) {}
    ~Careful();
};

// Cannot always be made; the elements in front of the one that failed are destroyed.
struct Touchy {
    unsigned key;
    explicit Touchy(unsigned k);
    Touchy();
    ~Touchy() { happens(key * 5); }
};

struct Base {
    unsigned value;
    explicit Base(unsigned v) : value(v) { happens(v + 1); }
    Base(const Base &other) : value(other.value) { happens(value + 2); }
    virtual ~Base() { happens(value + 3); }
    virtual unsigned get() const { return value; }
};
struct Left : virtual Base {
    explicit Left(unsigned v) : Base(v) {}
    unsigned get() const override { return value * 3; }
};
struct Right : virtual Base {
    explicit Right(unsigned v) : Base(v) {}
};
struct Both : Left, Right {
    explicit Both(unsigned v) : Base(v), Left(v), Right(v) {}
    unsigned get() const override { return value * 7; }
};
struct Wide {
    unsigned values[40];
    explicit Wide(unsigned v) { for (unsigned i = 0; i < 40; i++) values[i] = v + i; }
};
enum Colour { RED, GREEN, BLUE };
namespace { struct Local { unsigned value; }; }

struct Caller {
    virtual unsigned call(unsigned x) const = 0;
    virtual ~Caller() {}
};

extern "C" unsigned through_frame(function *f, unsigned x);
extern "C" unsigned through_saved(function *f, unsigned x);
unsigned in_thread(function *f, unsigned x);
unsigned in_child(function *f, unsigned x);
unsigned again(unsigned x);
