/* C++ exceptions in all that tables can say: types, references, pointers, any type, nested blocks, rethrow, constructors and
   destructors, function-try blocks, specifications, noexcept, foreign exceptions, and many call sites in one function with jump
   tables and labels between them. */
#include "case.h"
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <unwind.h>
#include <vector>

static unsigned sum;
static void note(unsigned what) { sum = mix(sum, what); }

struct Noted {
    unsigned what;
    explicit Noted(unsigned what) : what(what) { note(what); }
    ~Noted() { note(~what); }
};
struct Base {
    virtual ~Base() {}
    virtual unsigned code() const { return 11; }
};
struct Other {
    virtual ~Other() {}
    unsigned more = 3;
};
struct Derived : Base, Other {
    unsigned code() const override { return 12; }
};

NOINLINE void throws(unsigned x) {
    Noted noted(1);
    switch (opaque(x) % 9) {
    case 0: throw int(x);
    case 1: throw Derived();
    case 2: throw std::runtime_error("runtime");
    case 3: throw std::string("text");
    case 4: throw 2.5;
    case 5: throw "literal";
    case 6: throw std::bad_alloc();
    case 7: throw static_cast<const Base *>(nullptr);
    }
    note(x);
}

NOINLINE unsigned by_type(unsigned x) {
    try {
        Noted noted(10);
        throws(x);
    } catch (int value) {
        return value;
    } catch (const Other &other) {
        return 100 + other.more;
    } catch (const Base &base) {
        return 200 + base.code();
    } catch (const std::exception &e) {
        return 300 + e.what()[0];
    } catch (const Base *pointer) {
        return pointer ? 1 : 400;
    } catch (...) {
        note(2);
        throw;
    }
    return 7;
}

NOINLINE unsigned nested(unsigned x) {
    Noted first(20);
    try {
        Noted second(30);
        try {
            return by_type(x);
        } catch (const std::string &text) {
            Noted third(40);
            by_type(x + 1);
            return text.size();
        }
    } catch (double d) {
        try {
            throws(opaque(5));
        } catch (const char *text) {
            return std::strlen(text) + static_cast<unsigned>(d * 2);
        }
    } catch (const char *) {
        return 500;
    }
    return 600;
}

/* No landing pad: unwound through, whole or split. */
NOINLINE unsigned between(unsigned x) {
    volatile unsigned room[40];
    room[x % 40] = x;
    return nested(x) + room[x % 40];
}

struct Part {
    Noted noted;
    explicit Part(unsigned x) : noted(x) {
        if (x % 3 == 2)
            throw x;
    }
};
struct Whole : Base {
    Part a, b;
    std::vector<Part> more;
    explicit Whole(unsigned x) try : a(3 * x), b(opaque(3 * x + x % 3)), more() {
        for (unsigned i = 0; i < x; i++)
            more.emplace_back(3 * i);
        throws(x);
    } catch (unsigned value) {
        note(value);
        throw value + 1;
    } catch (int) {
        note(50);
    }
};
NOINLINE unsigned constructs(unsigned x) {
    try {
        Whole whole(x);
        return whole.more.size();
    } catch (unsigned value) {
        return value;
    } catch (int value) {
        return 1000 + value;
    } catch (...) {
        return 2000;
    }
}
NOINLINE unsigned array(unsigned x) {
    try {
        Part *parts = new Part[2]{Part(opaque(3)), Part(x)};
        delete[] parts;
        return 1;
    } catch (unsigned) {
        return 2;
    }
}

static bool unexpected_called;
NOINLINE void listed(unsigned x) throw(int, double, std::bad_exception) {
    Noted noted(60);
    throws(x);
}
NOINLINE unsigned specified(unsigned x) {
    try {
        listed(x);
        return 1;
    } catch (int) {
        return 2;
    } catch (double) {
        return 3;
    } catch (const std::bad_exception &) {
        return 4;
    }
}

/* Many call sites, jump tables between them, and loops through landing pads. */
NOINLINE unsigned machine(const unsigned char *program, unsigned size) {
    unsigned a = 1, caught = 0;
    for (unsigned i = 0; i < size; i++) {
        try {
            Noted noted(i);
            switch (program[i] % 13) {
            case 0: a += nested(a); break;
            case 1: throws(a); break;
            case 2: a ^= by_type(i); break;
            case 3: a += constructs(i % 5); break;
            case 4: a = a * 3 + 1; break;
            case 5: throws(i); a++; break;
            case 6: throws(a + i); a += 2; break;
            case 7: if (a & 1) throws(i + 1); else a += array(i); break;
            case 8: a -= 5; throws(a % 4); break;
            case 9: a += between(i); break;
            case 10: throw caught;
            case 11: a += specified(i % 5); break;
            default: a = mix(a, i);
            }
        } catch (int value) {
            a += value;
            continue;
        } catch (unsigned value) {
            caught += value + 1;
        } catch (const std::exception &e) {
            a = mix(a, e.what()[1]);
            if (a % 5 == 0)
                i++;
        } catch (...) {
            caught++;
        }
    }
    return mix(a, caught);
}

/* Labels whose addresses are taken, with landing pads beside them. */
NOINLINE unsigned labels(unsigned steps) {
    static const void *const table[] = {&&add, &&fail, &&twice, &&stop};
    unsigned a = 1;
    volatile unsigned i = 0;
next:
    if (i >= steps)
        goto *table[3];
    i = i + 1;
    goto *table[mix(a, i) % 3];
add:
    try {
        a += by_type(a);
    } catch (...) {
        a += 5;
    }
    goto next;
fail:
    try {
        Noted noted(a);
        throws(a);
        a += 9;
    } catch (const Base &base) {
        a += base.code();
    } catch (...) {
        a ^= 77;
    }
    goto next;
twice:
    a *= 2;
    goto next;
stop:
    return a;
}

static _Unwind_Exception foreign;
static void clean_foreign(_Unwind_Reason_Code, _Unwind_Exception *) { note(70); }
NOINLINE void raise_foreign() {
    std::memcpy(&foreign.exception_class, "OTHRTEST", 8);
    foreign.exception_cleanup = clean_foreign;
    Noted noted(71);
    _Unwind_RaiseException(&foreign);
    std::abort();
}
NOINLINE unsigned catches_foreign() {
    try {
        Noted noted(72);
        raise_foreign();
    } catch (const std::exception &) {
        return 1;
    } catch (...) {
        return 2;
    }
    return 3;
}

static jmp_buf back;
static unsigned ended;
NOINLINE void end() {
    ended++;
    longjmp(back, 1);
}
/* What is thrown in a noexcept function, out of a destructor while unwinding, or past a place that no table names, ends. */
NOINLINE void never(unsigned x) noexcept {
    Noted noted(80);
    throws(x);
}
struct Throwing {
    unsigned x;
    ~Throwing() noexcept(false) { throws(x); }
};
NOINLINE void twice(unsigned x) {
    Throwing throwing{x};
    throws(x);
}
NOINLINE unsigned ends(void (*f)(unsigned), unsigned x) {
    volatile unsigned reached = 0;
    if (setjmp(back) == 0) {
        try {
            f(x);
            reached = 1;
        } catch (...) {
            reached = 2;
        }
    }
    return reached + 10 * ended;
}

int main() {
    std::set_terminate(end);
    std::set_unexpected([] {
        unexpected_called = true;
        throw;
    });
    for (unsigned i = 0; i < 18; i++) {
        try {
            note(between(i));
        } catch (...) {
            note(90);
        }
        note(constructs(i % 6));
        note(array(i));
    }
    std::printf("%08x\n", sum);
    for (unsigned x : {0u, 4u, 8u})
        std::printf("%u ", specified(x));
    unsigned char program[400];
    for (unsigned i = 0; i < sizeof program; i++)
        program[i] = mix(i, 12345) >> 7;
    unsigned result = machine(program, sizeof program);
    std::printf("%08x %08x\n", result, sum);
    result = labels(60);
    std::printf("%08x %08x\n", result, sum);
    result = catches_foreign();
    std::printf("%u %08x\n", result, sum);
    std::printf("%u ", ends(never, 8));
    std::printf("%u ", ends(never, 3));
    std::printf("%u ", ends(twice, 8));
    std::printf("%u ", ends(twice, 1));
    std::printf("%08x %d\n", sum, unexpected_called);
}
