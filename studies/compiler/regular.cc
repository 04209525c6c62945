// Mostly the templates of the C++ library: regular expressions, maps, strings.
#include <iostream>
#include <map>
#include <regex>
#include <string>

int main() {
    std::regex pattern("a(b|c)*d");
    std::map<std::string, int> counts;
    std::string line;
    while (std::getline(std::cin, line))
        if (std::regex_match(line, pattern))
            counts[line]++;
    for (auto &[text, count] : counts)
        std::cout << text << ' ' << count << '\n';
}
