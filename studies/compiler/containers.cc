// Others of them: hash tables, variants, algorithms, threads.
#include <algorithm>
#include <functional>
#include <future>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

using value = std::variant<int, double, std::vector<int>>;

static std::optional<double> total(const value &of) {
    return std::visit(
        [](const auto &own) -> std::optional<double> {
            if constexpr (std::is_same_v<std::decay_t<decltype(own)>, std::vector<int>>)
                return own.empty() ? std::nullopt : std::optional(std::accumulate(own.begin(), own.end(), 0.0));
            else
                return own;
        },
        of);
}

int main(int count, char **) {
    std::unordered_map<int, value> values;
    for (int i = 0; i < count + 20; i++)
        values[i] = i % 3 == 0 ? value(i) : i % 3 == 1 ? value(i * 0.5) : value(std::vector<int>(i, 1));
    auto sum = std::async([&] {
        std::vector<double> all;
        for (auto &[key, of] : values)
            if (auto known = total(of))
                all.push_back(*known);
        std::sort(all.begin(), all.end(), std::greater<>());
        return std::accumulate(all.begin(), all.end(), 0.0);
    });
    return static_cast<int>(sum.get()) & 0x7f;
}
