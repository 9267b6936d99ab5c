#include "graph/verify.h"

#include <algorithm>
#include <set>

#include "opdef/check_op.h"

namespace anabranch {
namespace {

class Check {
 public:
  Check(const Graph& graph, std::unordered_set<ir::OpRef>* seen, std::unordered_set<std::string>* named)
      : graph_(graph),
        seen_(*seen),
        named_(*named),
        first_(seen->empty()),
        written_(graph.vars.size(), 0),
        holds_(graph.vars.size(), -1) {}

  void run() {
    for (size_t v = 0; v < graph_.vars.size(); ++v) check_shared_memory(static_cast<int>(v));
    for (at_ = 0; at_ < graph_.nodes.size(); ++at_) {
      const GraphNode& node = graph_.nodes[at_];
      demand(node.op != nullptr, "there is no op");
      if (seen_.insert(node.op).second) {
        check_schema(*node.op);
        check_role_vars(*node.op, node.replica);
      }
      check_ids(node.op->inputs, node.ins);
      check_ids(node.op->outputs, node.outs);
      check_order(node);
    }
  }

 private:
  template <class... Args> void demand(bool ok, fmt::format_string<Args...> what, Args&&... args) const {
    if (ok) return;
    const GraphNode& node = graph_.nodes[at_];
    AB_THROW(Internal, "graph node {} ({}, replica {}): {}", at_, node.op ? node.op->type : "", node.replica,
             fmt::format(what, std::forward<Args>(args)...));
  }

  void check_schema(const ir::Op& op) const {
    try {
      check_made(op);
    } catch (const Error& e) {
      demand(false, "{}", e.message());
    }
  }

  void check_ids(const std::vector<ir::Slot>& slots, const std::vector<int>& ids) const {
    size_t count = 0;
    for (const ir::Slot& slot : slots) count += slot.args.size();
    demand(count == ids.size(), "there must be a variable for each of {} arguments, got {}", count, ids.size());
    for (int v : ids) demand(v >= -1 && v < size(), "there are {} variables, got number {}", size(), v);
  }

  void check_role_vars(const ir::Op& op, int replica) {
    const auto it = op.attrs.find("op_role_var");
    const auto* names = it == op.attrs.end() ? nullptr : std::get_if<std::vector<std::string>>(&it->second);
    if (!names) return;
    for (const auto& name : *names) {
      if (first_) named_.insert(name);
      const bool known = first_ || named_.count(name) || graph_.find(name, replica) >= 0 || graph_.find(name, 0) >= 0;
      demand(known, "op_role_var must name variables of the graph, got {}", name);
    }
  }

  // In the order of the nodes; edges keep it in parallel execution, because they follow from buffers.
  void check_order(const GraphNode& node) {
    const bool may_miss = find_op(node.op->type).has(kMaybeUnset);
    for (int v : graph_.reads(node)) {
      demand(v >= 0 && v < size(), "there are {} variables, got number {}", size(), v);
      const GraphVar& var = graph_.vars[v];
      const bool given = !var.produced || var.fed || var.desc.persistable || may_miss;
      demand(given || written_[v], "variable {} must be written before it is read", var.name);
      if (std::find(node.only_shapes.begin(), node.only_shapes.end(), v) != node.only_shapes.end()) continue;
      const int now = holds_[graph_.buffer(v)];
      demand(now < 0 || now == v, "variable {} must be read before its memory holds {}", var.name,
             graph_.vars[std::max(now, 0)].name);
    }
    for (int v : graph_.writes(node)) check_write(node, v);
  }

  // Written more than once: values of the scope, variables that branches change in place, and sums for replicas without
  // rows.
  void check_write(const GraphNode& node, int v) {
    demand(v >= 0 && v < size(), "there are {} variables, got number {}", size(), v);
    demand(!written_[v] || changes(node, v), "variable {} must be made by one node", graph_.vars[v].name);
    written_[v] = 1;
    holds_[graph_.buffer(v)] = v;
  }

  bool changes(const GraphNode& node, int v) const {
    const auto is_in = [v](const std::vector<int>& some) {
      return std::find(some.begin(), some.end(), v) != some.end();
    };
    const OpDef& def = find_op(node.op->type);
    return is_in(node.ins) || is_in(node.more_reads) || is_in(node.more_writes) || def.has(kKeepsOutputs) ||
           def.has(kEngineOnly) || graph_.vars[v].desc.persistable;
  }

  void check_shared_memory(int v) const {
    if (graph_.vars[v].same_buffer_as < 0) return;
    const GraphVar& var = graph_.vars[v];
    std::set<int> seen{v};
    for (int w = var.same_buffer_as; w >= 0; w = graph_.vars[w].same_buffer_as) {
      AB_CHECK(w < size(), Internal, "variable {} shares the memory of number {}, there are {}", var.name, w, size());
      AB_CHECK(seen.insert(w).second, Internal, "variable {} shares memory in a cycle", var.name);
      const ir::Var &a = var.desc, &b = graph_.vars[w].desc;
      AB_CHECK(var.place == graph_.vars[w].place, Internal, "variable {} shares the memory of {}, which lies at {}",
               var.name, b.name, graph_.vars[w].place.str());
      AB_CHECK(a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape, Internal,
               "variable {} shares the memory of {}, so it must be {} {}, got {} {}", var.name, b.name,
               dtype_name(b.dtype), b.shape.str(), dtype_name(a.dtype), a.shape.str());
    }
    for (int w : seen) {
      const GraphVar& shared = graph_.vars[w];
      AB_CHECK(!shared.desc.persistable && !shared.fed && !shared.fetched, Internal,
               "variable {} shares memory, so it must be a temporary", shared.name);
    }
  }

  int size() const { return static_cast<int>(graph_.vars.size()); }

  const Graph& graph_;
  std::unordered_set<ir::OpRef>& seen_;
  std::unordered_set<std::string>& named_;
  const bool first_;
  std::vector<char> written_;
  std::vector<int> holds_;  // by buffer: the variable whose value it holds; -1 before the first node
  size_t at_ = 0;
};

}  // namespace

void Verifier::verify(const Graph& graph) {
  if (seen_.empty()) seen_.reserve(2 * graph.nodes.size());  // and the ops that passes create
  Check(graph, &seen_, &named_).run();
}

}  // namespace anabranch
