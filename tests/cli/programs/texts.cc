/* The standard library's regular expressions: clean-ups of what must not throw, in which a jump that only leads on stands behind the call that ends the program. */
#include <cstdio>
#include <regex>
#include <string>

int main() {
    std::string text = "laid out in 1984, proven in 2026 and 2031";
    for (std::smatch found; std::regex_search(text, found, std::regex("([0-9]{4})(,| and)?")); text = found.suffix())
        std::puts(found.str(1).c_str());
    std::puts(std::regex_replace(std::string("a-b-c"), std::regex("-|_+"), " ").c_str());
}
