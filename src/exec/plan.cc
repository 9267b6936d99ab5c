#include "exec/plan.h"

#include <algorithm>
#include <unordered_map>

namespace anabranch {
namespace {

// The last writer of a buffer, and its readers since.
struct BufferState {
  int writer = -1;
  std::vector<int> readers;
};

class EdgeBuilder {
 public:
  explicit EdgeBuilder(int nodes) : successors_(nodes), seen_(nodes, -1) {}

  void add(int node, const NodeSpec& spec) {
    for (int b : spec.reads) read(node, buffers_[b]);
    for (int b : spec.writes) write(node, buffers_[b]);
    for (int t : spec.tokens) write(node, tokens_[t]);
  }

  std::vector<std::vector<int>> successors_;

 private:
  void edge(int from, int to) {
    if (from < 0 || from == to || seen_[from] == to) return;  // nodes come in order: `to` is the newest one
    seen_[from] = to;
    successors_[from].push_back(to);
  }
  void read(int node, BufferState& b) {
    edge(b.writer, node);
    b.readers.push_back(node);
  }
  void write(int node, BufferState& b) {
    for (int r : b.readers) edge(r, node);
    edge(b.writer, node);
    b.writer = node;
    b.readers.clear();
  }

  std::vector<int> seen_;
  std::unordered_map<int, BufferState> buffers_, tokens_;
};

}  // namespace

Plan::Plan(std::vector<NodeSpec> specs) {
  size_t n_args = 0;
  for (const auto& s : specs) n_args += s.ins.size() + s.outs.size() + 2;
  args_.reserve(n_args);
  EdgeBuilder edges(static_cast<int>(specs.size()));
  for (size_t i = 0; i < specs.size(); ++i) edges.add(static_cast<int>(i), specs[i]);
  nodes_.resize(specs.size());
  derived_ = std::move(edges.successors_);
  flatten(derived_);
  for (size_t i = 0; i < specs.size(); ++i) {
    NodeSpec& spec = specs[i];
    Node& node = nodes_[i];
    node.kernel = std::move(spec.kernel);
    shapes_.push_back(std::move(spec.shape));
    is_dynamic_.push_back(spec.dynamic);
    node.context.replica = static_cast<int16_t>(spec.replica);
    if (spec.later) node.context.call = KernelContext::Call::kLater;
    if (spec.queue_index != kHost) node.context.call = KernelContext::Call::kQueued;
    queue_indices_.push_back(spec.queue_index);
    status_.push_back(spec.status);
    node.context.ins = args_.data() + args_.size();
    args_.insert(args_.end(), spec.ins.begin(), spec.ins.end());
    args_.push_back(Value::nothing());  // target of handles for missing arguments
    node.context.outs = args_.data() + args_.size();
    args_.insert(args_.end(), spec.outs.begin(), spec.outs.end());
    args_.push_back(Value::nothing());
  }
  if (queue_count() == 0) queue_indices_.clear();
  find_later();
}

int Plan::queue_count() const {
  return queue_indices_.empty() ? 0 : *std::max_element(queue_indices_.begin(), queue_indices_.end()) + 1;
}

void Plan::order(const std::vector<std::pair<int, int>>& edges) {
  auto successors = derived_;
  for (const auto& [from, to] : edges) {
    AB_CHECK(from < to, Internal, "edge from node {} to node {}", from, to);
    auto& known = successors[from];
    if (std::find(known.begin(), known.end(), to) == known.end()) known.push_back(to);
  }
  flatten(successors);
  find_later();
}

void Plan::find_later() {
  later_before_.clear();
  first_later_.clear();
  int any = 0;
  while (any < size() && !is_async(any)) ++any;
  if (any == size()) return;
  std::vector<std::vector<int>> before(nodes_.size());
  for (int i = 0; i < size(); ++i) {
    if (!is_async(i)) continue;
    for (const int next : successors(i)) before[next].push_back(i);
  }
  for (const auto& list : before) {
    first_later_.push_back(static_cast<int>(later_before_.size()));
    later_before_.insert(later_before_.end(), list.begin(), list.end());
  }
  first_later_.push_back(static_cast<int>(later_before_.size()));
}

void Plan::flatten(const std::vector<std::vector<int>>& successors) {
  const int n = size();
  successors_.clear();
  roots_.clear();
  first_successor_.clear();
  predecessors_.assign(n, 0);
  int width = 0;  // largest number of nodes at the same depth: 1 means a chain
  std::vector<int> depth(n, 0), at_depth(n + 1, 0);
  for (int i = 0; i < n; ++i) {
    first_successor_.push_back(static_cast<int>(successors_.size()));
    successors_.insert(successors_.end(), successors[i].begin(), successors[i].end());
    if (predecessors_[i] == 0) roots_.push_back(i);
    for (int s : successors[i]) {
      ++predecessors_[s];
      depth[s] = std::max(depth[s], depth[i] + 1);
    }
    width = std::max(width, ++at_depth[depth[i]]);
  }
  first_successor_.push_back(static_cast<int>(successors_.size()));
  is_chain_ = width <= 1;
}

void Plan::lay_out(int* at) {
  for (int i = 0; i < size(); ++i) {
    *at = i;
    if (!is_dynamic_[i]) infer(i);
  }
}

}  // namespace anabranch
