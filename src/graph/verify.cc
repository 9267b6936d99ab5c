// What every pass must leave behind.
#include <algorithm>
#include <set>

#include "graph/graph.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), written_(graph.vars.size(), 0) {}

  void run() {
    for (at_ = 0; at_ < graph_.nodes.size(); ++at_) {
      const GraphNode& node = graph_.nodes[at_];
      const OpDef& def = find_op(node.op->type);
      check_slots(node.op->inputs, node.ins, true, def);
      check_slots(node.op->outputs, node.outs, false, def);
      check_order(node);
    }
    for (size_t v = 0; v < graph_.vars.size(); ++v) check_shared_memory(static_cast<int>(v));
  }

 private:
  template <class... Args> void demand(bool ok, fmt::format_string<Args...> what, Args&&... args) const {
    if (ok) return;
    const GraphNode& node = graph_.nodes[at_];
    AB_THROW(Internal, "graph node {} ({}, replica {}): {}", at_, node.op->type, node.replica,
             fmt::format(what, std::forward<Args>(args)...));
  }

  // The op has the slots of its type, with as many arguments as they take, and a variable for each.
  void check_slots(const std::vector<ir::Slot>& slots, const std::vector<int>& ids, bool input,
                   const OpDef& def) const {
    size_t count = 0;
    for (const ir::Slot& slot : slots) {
      const SlotDef* declared = input ? def.find_input(slot.name) : def.find_output(slot.name);
      demand(declared != nullptr, "there is no slot {}", slot.name);
      demand(declared->list || slot.args.size() <= 1, "slot {} must have one argument, got {}", slot.name,
             slot.args.size());
      count += slot.args.size();
    }
    demand(count == ids.size(), "there must be a variable for each of {} arguments, got {}", count, ids.size());
    for (int v : ids) demand(v >= -1 && v < size(), "there are {} variables, got number {}", size(), v);
  }

  // A value that the graph makes is made before it is read.
  void check_order(const GraphNode& node) {
    for (int v : graph_.reads(node)) {
      demand(v >= 0 && v < size(), "there are {} variables, got number {}", size(), v);
      const GraphVar& var = graph_.vars[v];
      const bool given = !var.produced || var.fed || var.desc.persistable || def_may_miss(node);
      demand(given || written_[v], "variable {} must be written before it is read", var.name);
    }
    for (int v : graph_.writes(node)) {
      demand(v >= 0 && v < size(), "there are {} variables, got number {}", size(), v);
      written_[v] = 1;
    }
  }

  bool def_may_miss(const GraphNode& node) const { return find_op(node.op->type).has(kMaybeUnset); }

  void check_shared_memory(int v) const {
    std::set<int> seen;
    for (int w = v; w >= 0; w = graph_.vars[w].same_buffer_as) {
      AB_CHECK(seen.insert(w).second, Internal, "variable {} shares memory in a circle", graph_.vars[w].name);
      const ir::Var &a = graph_.vars[v].desc, &b = graph_.vars[w].desc;
      AB_CHECK(a.kind == b.kind && a.dtype == b.dtype, Internal,
               "variable {} shares the memory of {}, so it must be {}, got {}", a.name, b.name, dtype_name(b.dtype),
               dtype_name(a.dtype));
    }
  }

  int size() const { return static_cast<int>(graph_.vars.size()); }

  const Graph& graph_;
  std::vector<char> written_;
  size_t at_ = 0;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace anabranch
