/* Virtual functions called through each base: thunks that change `this` by a constant or by what the table says, and what is returned;
   pointers to members, virtual and not, of every base; constructors that call them; and a part that no exception may leave. */
#include "case.h"
#include <cstdio>
#include <initializer_list>

static unsigned sum = 1;
static void note(unsigned what) { sum = mix(sum, what); }

struct Root {
    unsigned root = 1;
    virtual ~Root() { note(root); }
    virtual unsigned code() const { return 10 + root; }
    virtual Root *self() { return this; }
};
struct Left : virtual Root {
    unsigned left = 2;
    Left() { note(code()); }
    unsigned code() const override { return 20 + left + root; }
    Left *self() override { return this; }
    virtual unsigned only_left(unsigned x) { return x * left; }
};
struct Right : virtual Root {
    unsigned right = 3;
    Right() { note(code()); }
    unsigned code() const override { return 30 + right + root; }
    Right *self() override { return this; }
    virtual unsigned only_right(unsigned x) noexcept { return x * right; }
};
struct Plain {
    unsigned plain = 4;
    virtual ~Plain() { note(plain); }
    virtual unsigned more(unsigned x) { return x + plain; }
    unsigned fixed(unsigned x) { return x ^ plain; }
};
struct Bottom : Plain, Left, Right {
    unsigned bottom = 5;
    unsigned code() const override { return 40 + bottom + left + right + root; }
    Bottom *self() override { return this; }
    unsigned only_left(unsigned x) override { return x + bottom; }
    unsigned only_right(unsigned x) noexcept override { return x - bottom; }
    unsigned more(unsigned x) override { return x * bottom; }
};

NOINLINE static void through_bases(Root &root, Left &left, Right &right, Plain &plain, unsigned x) {
    note(root.code());
    note(left.code() + right.code());
    note(left.only_left(x));
    note(right.only_right(x));
    note(plain.more(x));
    note(root.self() == &root);
    note(left.self()->left);
    note(right.self()->right);
}

NOINLINE static unsigned by_pointer(Plain &object, unsigned (Plain::*member)(unsigned), unsigned x) { return (object.*member)(x); }
NOINLINE static unsigned by_pointer(Bottom &object, unsigned (Bottom::*member)(unsigned), unsigned x) { return (object.*member)(x); }

int main() {
    for (unsigned i = 0; i < 20; i++) {
        Bottom *object = new Bottom;
        object->bottom += opaque(i);
        through_bases(*object, *object, *object, *object, i);
        unsigned (Plain::*const members[])(unsigned) = {&Plain::more, &Plain::fixed};
        for (auto member : members) {
            note(by_pointer(static_cast<Plain &>(*object), member, i));
            note(by_pointer(*object, static_cast<unsigned (Bottom::*)(unsigned)>(member), i));
        }
        for (auto member : {&Bottom::only_left, static_cast<unsigned (Bottom::*)(unsigned)>(&Left::only_left)})
            note(by_pointer(*object, member, i));
        if (i % 2)
            delete static_cast<Root *>(object);
        else
            delete static_cast<Plain *>(object);
        Left left;
        note(static_cast<Root &>(left).code());
    }
    std::printf("%08x\n", sum);
    return 0;
}
