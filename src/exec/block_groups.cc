// Independent neighbors in a sub-block that run blocks: if they take long, idle workers run them in parallel. The
// decision is measured, because a tiny branch costs less than waking a thread.
#include <algorithm>
#include <chrono>
#include <set>

#include "exec/block_code.h"
#include "exec/run.h"

namespace anabranch {
namespace {

constexpr int64_t kLong = 50'000;  // nanoseconds

// Values that a node uses, including the blocks that it runs and their forward blocks: a block and its gradient share
// frames.
struct Touched {
  std::set<int> reads, writes, blocks;
};

bool meet(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int x) { return b.count(x) != 0; });
}

bool waits(const Touched& a, const Touched& b) {
  return meet(a.writes, b.reads) || meet(a.writes, b.writes) || meet(a.reads, b.writes) || meet(a.blocks, b.blocks);
}

// Printing, file access and similar effects keep the order of the program.
bool is_ordered(const ir::Program& program, int block) {
  const auto& ops = program.block(block).ops();
  return std::any_of(ops.begin(), ops.end(), [&](const ir::OpRef& op) {
    const auto subs = op->sub_blocks();
    return find_op(op->type).has(kOrdered) ||
           std::any_of(subs.begin(), subs.end(), [&](int sub) { return is_ordered(program, sub); });
  });
}

Touched touched_by(const ir::Program& program, const Graph& graph, const GraphNode& node) {
  Touched t;
  for (int v : graph.reads(node)) t.reads.insert(v);
  for (int v : graph.writes(node)) t.writes.insert(v);
  for (int sub : node.op->sub_blocks()) {
    t.blocks.insert(sub);
    if (program.block(sub).forward_block > 0) t.blocks.insert(program.block(sub).forward_block);
  }
  return t;
}

}  // namespace

void BlockCode::find_groups(const Graph& graph) {
  std::vector<Touched> group;  // the group that ends here
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    const auto subs = node.op->sub_blocks();
    const bool may = !subs.empty() &&
                     std::none_of(subs.begin(), subs.end(), [&](int sub) { return is_ordered(set_.program_, sub); });
    const Touched now = may ? touched_by(set_.program_, graph, node) : Touched{};
    const bool joins = may && std::none_of(group.begin(), group.end(), [&](const Touched& t) { return waits(t, now); });
    if (!joins) group.clear();
    if (!may) continue;
    group.push_back(now);
    nodes_[i + 1 - group.size()].group = group.size();
  }
}

// Whether at least two of them take long.
bool BlockCode::pays(size_t first) const {
  const Node* begin = &nodes_[first];
  return std::count_if(begin, begin + begin->group, [](const Node& n) { return n.took_ns > kLong; }) > 1;
}

void BlockCode::run_group(BlockFrame& frame, IterationContext& c, size_t first) {
  const size_t count = nodes_[first].group;
  for (size_t i = first; i < first + count; ++i) {
    at_.store(&nodes_[i], std::memory_order_relaxed);
    lay_out(frame, c, nodes_[i]);
  }
  at_.store(nullptr, std::memory_order_relaxed);
  at_group_.store(&nodes_[first], std::memory_order_relaxed);
  const IterationContext& shared = c;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run_member(frame, shared, nodes_[first + static_cast<size_t>(i)]);
  };
  if (pays(first)) {
    parallel_for(c.parallel, static_cast<int64_t>(count), 1, run);
  } else {
    run(0, static_cast<int64_t>(count));
  }
  at_group_.store(nullptr, std::memory_order_relaxed);
}

void BlockCode::run_member(BlockFrame& frame, const IterationContext& c, Node& node) {
  using Clock = std::chrono::steady_clock;
  const Watching watching(hooks_);
  IterationContext mine(c);
  const auto begin = Clock::now();
  try {
    run_node(frame, mine, node);
  } catch (Error& e) {
    e.in_op(node.type).with_op(node.text);
    throw;
  }
  node.took_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

}  // namespace anabranch
