// Cost of a node beyond its kernel: runs a plan of nodes that do nothing.
//
//     noop_nodes NODES WORKERS RUNS [CHAINS]
//
// WORKERS 0 is the sequential executor, else the threaded one on a pool of that size. The nodes form CHAINS chains (1)
// of equal length. Prints the nanoseconds of a node; benchmarks/instructions.py counts instructions with callgrind, as
// the difference of two numbers of RUNS.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "exec/run.h"

namespace {

using namespace anabranch;

Plan noop_plan(int nodes, int chains) {
  std::vector<NodeSpec> specs;
  for (int i = 0; i < nodes; ++i) {
    NodeSpec spec;
    spec.reads = spec.writes = {i % chains};
    spec.kernel = [](KernelContext&) {};
    specs.push_back(std::move(spec));
  }
  return Plan(std::move(specs));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) {
    fmt::print(stderr, "usage: {} NODES WORKERS RUNS [CHAINS]\n", argv[0]);
    return 2;
  }
  const int nodes = std::atoi(argv[1]), workers = std::atoi(argv[2]), runs = std::atoi(argv[3]);
  const int chains = argc > 4 ? std::atoi(argv[4]) : 1;
  if (nodes < 1 || workers < 0 || workers > ThreadPool::kMaxWorkers || runs < 1 || chains < 1) {
    fmt::print(stderr, "{}: a number is out of range\n", argv[0]);
    return 2;
  }
  Plan plan = noop_plan(nodes, chains);
  RunState state(plan);
  double best_ns = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (workers == 0) {
      run_sequential(plan, state, {});
    } else {
      run_threaded(plan, state, ThreadPool::of_size(workers), {});
    }
    best_ns =
        std::min(best_ns, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  fmt::print("{:.2f} ns a node\n", best_ns / nodes);
}
