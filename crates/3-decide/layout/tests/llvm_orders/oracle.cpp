// Lays out graphs with the code layout library of LLVM 22. Reads what the example dump_graphs
// writes; copies each line and appends "= SCORE ORDER..." (no score for call graphs).
// The time spent in the library goes to stderr.
#include "llvm/Transforms/Utils/CodeLayout.h"
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

using namespace llvm::codelayout;

static std::vector<uint64_t> numbers(std::istream &in, size_t count) {
  std::vector<uint64_t> list(count);
  for (uint64_t &number : list)
    in >> number;
  return list;
}

int main() {
  double flowSeconds = 0, callSeconds = 0;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string kind;
    size_t nodes, edgeCount;
    in >> kind >> nodes;
    auto sizes = numbers(in, nodes);
    auto counts = numbers(in, nodes);
    in >> edgeCount;
    std::vector<EdgeCount> edges;
    std::vector<uint64_t> offsets, order;
    for (size_t i = 0; i < edgeCount; i++) {
      EdgeCount edge;
      in >> edge.src >> edge.dst >> edge.count;
      edges.push_back(edge);
      if (kind == "call")
        offsets.push_back(numbers(in, 1)[0]);
    }
    auto start = std::chrono::steady_clock::now();
    if (kind == "flow")
      order = computeExtTspLayout(sizes, counts, edges);
    else
      order = computeCacheDirectedLayout(sizes, counts, edges, offsets);
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    (kind == "flow" ? flowSeconds : callSeconds) += spent.count();
    printf("%s =", line.c_str());
    if (kind == "flow")
      printf(" %.6f", calcExtTspScore(order, sizes, edges));
    for (uint64_t node : order)
      printf(" %lu", node);
    printf("\n");
  }
  fprintf(stderr, "ext-tsp %.3f s, cdsort %.3f s\n", flowSeconds, callSeconds);
}
