// A Plan is a program ready to run: a flat array of nodes in a legal order and the edges between them. Nothing in it
// changes from run to run except the buffers it points at. It knows function pointers and values, but no names and no
// op types: its builder keeps a table for error messages.
//
// Nodes declare their reads, their writes and the tokens they hold. The edges (read after write, write after read,
// write after write, same token) are derived from these once. Reusing a buffer adds a write-after-read edge, so it
// cannot race.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "opdef/kernel_context.h"

namespace anabranch {

// Gives the outputs shape and memory; chooses a kernel if there is none for these dtypes yet. True: it has chosen.
using ShapeFn = std::function<bool(KernelContext&, Kernel&)>;

// Of a node that the CPU runs.
inline constexpr int kHost = -1;

struct NodeSpec {
  Kernel kernel;
  ShapeFn shape;                   // may be empty
  bool dynamic = false;            // shapes depend on values: `shape` runs right before the kernel, every time
  std::vector<Value*> ins, outs;   // the targets of the kernel's handles; null for "none"
  std::vector<int> reads, writes;  // effects, as ids of buffers
  std::vector<int> tokens;         // nodes that hold the same token keep their order
  bool later = false;              // the kernel may return before the node has ended
  // the device queue that the node uses (queue_plan.h); such a node is never asynchronous
  int queue_index = kHost;
  bool status = false;  // its kernel uses the status flags of the run (device_status.h)
  int replica = 0;
};

class Plan {
 public:
  explicit Plan(std::vector<NodeSpec> specs);

  struct alignas(64) Node {  // everything that a run of the node needs
    Kernel kernel;
    KernelContext context;
  };

  int size() const { return static_cast<int>(nodes_.size()); }
  Node& node(int i) { return nodes_[i]; }
  // The kernel of node i, after its shape function if shapes depend on values.
  void run(int i) {
    if (is_dynamic_[i]) [[unlikely]]
      infer(i);
    nodes_[i].kernel(nodes_[i].context);
  }
  bool is_dynamic(int i) const { return is_dynamic_[i] != 0; }
  bool is_async(int i) const { return nodes_[i].context.call == KernelContext::Call::kLater; }
  bool has_async() const { return !first_later_.empty(); }
  int queue_index(int i) const { return queue_indices_.empty() ? kHost : queue_indices_[i]; }
  int queue_count() const;  // one more than the highest; 0: the CPU runs all nodes
  bool uses_status(int i) const { return !queue_indices_.empty() && status_[i] != 0; }
  // The asynchronous nodes that node i waits for; only in plans that have some.
  std::span<const int> later_before(int i) const {
    return {later_before_.data() + first_later_[i], later_before_.data() + first_later_[i + 1]};
  }
  void infer(int i) {
    if (shapes_[i]) shapes_[i](nodes_[i].context, nodes_[i].kernel);
  }
  std::span<const int> successors(int i) const {
    return {successors_.data() + first_successor_[i], successors_.data() + first_successor_[i + 1]};
  }
  int predecessors(int i) const { return predecessors_[i]; }
  uint32_t step(int i) const { return nodes_[i].context.step; }
  const std::vector<int>& roots() const { return roots_; }  // nodes without predecessors
  // No two nodes can run concurrently: parallel execution cannot pay.
  bool is_chain() const { return is_chain_; }

  // Edges in addition to those derived from effects, each from an earlier to a later node; they replace earlier
  // additions.
  void order(const std::vector<std::pair<int, int>>& edges);

  // Runs the shape functions of all static nodes, in order: after compiling, and when fed shapes change. `at` is the
  // current node, for error messages.
  void lay_out(int* at);

 private:
  void flatten(const std::vector<std::vector<int>>& successors);
  void find_later();

  std::vector<Node> nodes_;
  std::vector<char> is_dynamic_;
  std::vector<int> queue_indices_;  // by node; empty if the CPU runs all
  std::vector<char> status_;
  std::vector<ShapeFn> shapes_;
  std::vector<std::vector<int>> derived_;  // successors by node, from effects only
  std::vector<int> successors_, roots_;
  std::vector<int> first_successor_;  // by node, and the end of the last one's
  std::vector<int> predecessors_;     // by node: their number
  std::vector<int> later_before_, first_later_;
  std::vector<Value*> args_;  // all ins and outs, contiguous: contexts point into it
  bool is_chain_ = false;
};

}  // namespace anabranch
