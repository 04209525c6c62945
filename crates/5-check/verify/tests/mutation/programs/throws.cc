// Exceptions in every form that tables have: by type, in any case, by reference, with cleanups, through a specification, out of
// a noexcept function's neighbour, in nested blocks.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

static int sum;
struct Cleaned {
    int by;
    explicit Cleaned(int by) : by(by) {}
    ~Cleaned() { sum += by; }
};
struct Base {
    virtual ~Base() {}
    virtual int code() const { return 1; }
};
struct Derived : Base {
    int code() const override { return 2; }
};

__attribute__((noinline)) void throws(int x) {
    Cleaned cleaned(1);
    switch (x % 6) {
    case 0: throw x;
    case 1: throw Derived();
    case 2: throw std::runtime_error("runtime");
    case 3: throw std::string("text");
    case 4: throw 2.5;
    }
}

__attribute__((noinline)) int by_type(int x) {
    try {
        Cleaned cleaned(10);
        throws(x);
    } catch (int value) {
        return value;
    } catch (const Base &base) {
        return 100 + base.code();
    } catch (const std::exception &e) {
        return 200 + e.what()[0];
    } catch (...) {
        sum += 3;
        throw;
    }
    return 7;
}

__attribute__((noinline)) int nested(int x) {
    Cleaned first(20);
    try {
        Cleaned second(30);
        try {
            return by_type(x);
        } catch (const std::string &text) {
            Cleaned third(40);
            by_type(x + 1);
            return static_cast<int>(text.size());
        }
    } catch (double d) {
        return static_cast<int>(d * 2);
    }
}

__attribute__((noinline)) void listed(int x) throw(int, double, std::string) {
    Cleaned cleaned(5);
    if (x % 6 == 0 || x % 6 == 4)
        throws(x);
}

__attribute__((noinline)) int quiet(int x) noexcept {
    try {
        listed(x);
        return x;
    } catch (int) {
        return -1;
    } catch (...) {
        return -2;
    }
}

struct Part {
    Cleaned cleaned;
    int number;
    __attribute__((noinline)) explicit Part(int number) : cleaned(number), number(number) {
        if (number % 5 == 3)
            throw number;
    }
    __attribute__((noinline)) ~Part() { sum ^= number; }
};

__attribute__((noinline)) int parts(int x) {
    try {
        Part first(x), second(x + 1);
        Part *more = new Part[2]{Part(x + 2), Part(2 * x)};
        int number = more[x & 1].number;
        delete[] more;
        return number + first.number * second.number;
    } catch (int &number) {
        return number + 1;
    }
}

__attribute__((noinline)) int chosen(int x) {
    int found = 0;
    for (int i = 0; i < x; i++) {
        try {
            switch (i % 7) {
            case 0: found += by_type(i); break;
            case 1: found += parts(i); break;
            case 2: found ^= nested(i); break;
            case 3: throws(i); break;
            case 4: found *= 3; break;
            case 5: listed(i); break;
            case 6: found += quiet(i); break;
            }
        } catch (int number) {
            found -= number;
        } catch (...) {
            found++;
        }
    }
    return found;
}

int main(int argc, char **) {
    int total = 0;
    for (int i = 0; i < 24; i++)
        total += nested(i * argc) + quiet(i) + chosen(i);
    std::printf("%d %d\n", total, sum);
    return 0;
}
