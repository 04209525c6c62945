// Tables of virtual functions that hold distances of four bytes from the place that objects point to: for a function at the n-th
// row, the assembler writes its distance from the word and adds how far the word is from that place.
#include "case.h"
#include <cstdio>

struct shape {
    virtual unsigned area(unsigned x) const = 0;
    virtual unsigned name() const { return 1; }
    virtual const shape *self() const { return this; }
    virtual ~shape() {}
};
struct square : shape {
    unsigned area(unsigned x) const override { return x * x; }
    const square *self() const override { return this; }
};
struct ring : shape {
    unsigned area(unsigned x) const override { return x * 3 + 1; }
    unsigned name() const override { return mix(2, opaque(5)); }
};
struct other {
    unsigned kept = 5;
    virtual unsigned more(unsigned x) { return x + kept; }
    virtual ~other() {}
};
// Two tables in one, with thunks for what is called through the second.
struct both : square, other {
    unsigned more(unsigned x) override { return mix(kept, x); }
    unsigned name() const override { return 3; }
};
// Virtual bases: the distance to them is known only when the program runs, and construction has tables of its own.
struct base {
    unsigned value;
    explicit base(unsigned v) : value(v) {}
    virtual unsigned get() { return value; }
    virtual ~base() {}
};
struct left : virtual base {
    left() : base(2) { value += get(); }
    unsigned get() override { return value * 3; }
};
struct right : virtual base {
    right() : base(3) { value ^= get(); }
    virtual unsigned only() { return value + 1; }
};
struct joined : left, right {
    joined(unsigned v) : base(v) { value += get(); }
    unsigned get() override { return value * 5 + only(); }
};
namespace {
struct hidden : shape {
    unsigned area(unsigned x) const override { return x >> 1; }
    unsigned name() const override { return 77; }
};
}

NOINLINE unsigned ask(const shape &s, unsigned x) { return mix(s.self()->area(x), s.name()); }
NOINLINE unsigned ask(other &o, unsigned x) { return o.more(x); }
NOINLINE unsigned ask(base &b) { return b.get(); }
NOINLINE unsigned ask(right &r) { return r.only(); }
NOINLINE unsigned through(const shape &s, unsigned (shape::*function)(unsigned) const, unsigned x) {
    return (s.*function)(x);
}

int main() {
    unsigned sum = 1;
    for (unsigned i = 0; i < 200; i++) {
        shape *shapes[] = {new square, new ring, new both, new hidden};
        for (shape *s : shapes) {
            sum = mix(sum, ask(*s, i));
            sum = mix(sum, through(*s, &shape::area, i));
        }
        other plain;
        sum = mix(sum, ask(plain, i) + ask(static_cast<other &>(*static_cast<both *>(shapes[2])), i));
        joined j(i);
        sum = mix(sum, ask(static_cast<base &>(j)) + ask(static_cast<right &>(j)));
        for (shape *s : shapes)
            delete s;
    }
    std::printf("%08x\n", sum);
    return 0;
}
