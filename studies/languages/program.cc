// C++: virtual functions and pointers to them, virtual inheritance, exceptions, threads, regular expressions.
#include <algorithm>
#include <future>
#include <iostream>
#include <memory>
#include <regex>
#include <stdexcept>
#include <vector>

struct Shape {
    virtual ~Shape() {}
    virtual int area(int x) { return x + 1; }
    int twice(int x) { return x * 2; }
    int less(int x) { return x - 3; }
};
struct Square : virtual Shape {
    int area(int x) override { return x * x; }
};
struct Limited : Square {
    int area(int x) override {
        if (x > 5)
            throw std::out_of_range("too large");
        return Square::area(x) * 2;
    }
};

int main() {
    int (Shape::*const members[])(int) = {&Shape::area, &Shape::twice, &Shape::less};
    std::unique_ptr<Shape> shape(new Limited);
    for (auto member : members)
        std::cout << (shape.get()->*member)(4) << ' ';
    try {
        shape->area(9);
    } catch (const std::exception &error) {
        std::cout << error.what() << '\n';
    }
    auto later = std::async(std::launch::async, []() -> int { throw std::runtime_error("from a thread"); });
    try {
        later.get();
    } catch (const std::runtime_error &error) {
        std::cout << error.what() << '\n';
    }
    std::cout << std::regex_replace("1984 and 2026", std::regex("(\\d{4})"), "[$1]") << '\n';
    std::vector<std::string> words{"pear", "fig", "apple"};
    std::sort(words.begin(), words.end(), [](auto &a, auto &b) { return a.size() < b.size(); });
    for (auto &word : words)
        std::cout << word << '\n';
}
