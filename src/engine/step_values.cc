#include "engine/step_values.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "device/purpose.h"
#include "graph/edit.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

int64_t elems(const Value* v) {
  const Tensor* t = v ? v->get<Tensor>() : nullptr;
  return t ? t->numel() : 0;
}

bool is_shareable(const GraphVar& var) {
  return !var.desc.persistable && !var.fed && !var.fetched && !var.dynamic && var.produced &&
         var.desc.kind == VarKind::kLoDTensor;
}

}  // namespace

std::set<int> changed_vars(const Graph& graph) {
  std::set<int> changed;
  for (const GraphNode& node : graph.nodes) {
    const bool frozen = find_op(node.op->type).is_frozen(*node.op);
    for (int v : graph.writes(node)) {
      if (!frozen || std::count(node.ins.begin(), node.ins.end(), v) == 0) changed.insert(v);
    }
  }
  return changed;
}

int users_of(const Graph& graph, int var) {
  std::set<int> replicas;
  for (const GraphNode& node : graph.nodes) {
    const auto& ins = graph.reads(node);
    const auto& outs = graph.writes(node);
    if (std::count(ins.begin(), ins.end(), var) || std::count(outs.begin(), outs.end(), var))
      replicas.insert(node.replica);
  }
  return static_cast<int>(replicas.size());
}

int64_t touched_elems(const Graph& graph, const Lowered& lowered) {
  int64_t touched = 0;
  for (const GraphNode& node : graph.nodes) {
    for (int v : graph.reads(node)) touched += elems(lowered.values[v]);
    for (int v : graph.writes(node)) touched += elems(lowered.values[v]);
  }
  return touched;
}

namespace {

// An op that passes on the elements of its operand in another shape shares the operand's memory if no other node reads
// the operand: then nothing is copied.
void lay_on_operands(const Graph& graph, const Lowered& lowered, std::vector<Temporary>* temporaries) {
  std::map<const Value*, int> number;
  for (const Temporary& t : *temporaries) number.emplace(t.value, static_cast<int>(number.size()));
  std::vector<int> readers(graph.vars.size(), 0);
  for (const GraphNode& node : graph.nodes) {
    for (const int v : graph.reads(node)) ++readers[static_cast<size_t>(v)];
  }
  const auto number_of = [&](int v) {
    const auto it = v < 0 ? number.end() : number.find(lowered.values[static_cast<size_t>(v)]);
    return it == number.end() ? -1 : it->second;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    const OpDef& def = find_op(node.op->type);
    if (!def.is(kKeepsElements)) continue;
    for (const auto& [in_slot, out_slot] : def.shares()) {
      const int in = input_var(node, in_slot), operand = number_of(in), result = number_of(output_var(node, out_slot));
      if (operand < 0 || result < 0 || readers[static_cast<size_t>(in)] != 1) continue;
      const Temporary& below = (*temporaries)[static_cast<size_t>(operand)];
      Temporary& above = (*temporaries)[static_cast<size_t>(result)];
      const auto at = static_cast<int>(i);
      if (below.last == at && above.first == at && below.place == above.place) above.within = operand;
    }
  }
}

}  // namespace

std::vector<Temporary> find_temporaries(const Graph& graph, const Lowered& lowered, bool in_place) {
  std::map<const Value*, Temporary> found;
  std::set<const Value*> kept;
  for (size_t v = 0; v < graph.vars.size(); ++v) {
    if (!is_shareable(graph.vars[v])) kept.insert(lowered.values[v]);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    const bool runs_block = find_op(node.op->type).has(kRunsBlock);
    const auto note = [&](int v, bool writes) {
      Value* value = lowered.values[v];
      const auto [it, fresh] = found.try_emplace(value);
      Temporary& t = it->second;
      if (runs_block || (fresh && !writes)) kept.insert(value);
      if (fresh) t = {value, static_cast<int>(i), -1, {}, graph.vars[v].place};
      if (t.users.empty() || t.users.back() != static_cast<int>(i)) t.users.push_back(static_cast<int>(i));
      t.last = static_cast<int>(i);
    };
    for (int v : graph.reads(node)) note(v, false);
    for (int v : graph.writes(node)) note(v, true);
  }
  std::vector<Temporary> shareable;
  for (auto& [value, t] : found) {
    if (!kept.count(value)) shareable.push_back(std::move(t));
  }
  if (in_place) lay_on_operands(graph, lowered, &shareable);
  return shareable;
}

namespace {

// The value of variable v of the graph outside of the plan if it is at another place than the graph has it; else null.
Tensor* away(const Graph& graph, const Lowered& lowered, size_t v) {
  auto* t = lowered.is_outside[v] ? lowered.values[v]->get<Tensor>() : nullptr;
  return t && t->initialized() && !(t->place() == graph.vars[v].place) ? t : nullptr;
}

}  // namespace

bool is_in_place(const Graph& graph, const Lowered& lowered) {
  for (size_t v = 0; v < graph.vars.size(); ++v) {
    if (away(graph, lowered, v)) return false;
  }
  return true;
}

void move_into_place(const Graph& graph, const Lowered& lowered) {
  for (size_t v = 0; v < graph.vars.size(); ++v) {
    Tensor* t = away(graph, lowered, v);
    if (!t) continue;
    Tensor there;
    const device::Purpose values([&] { return graph.vars[v].name; });
    try {
      there.copy_from(*t, graph.vars[v].place);
    } catch (Error& e) {
      throw e.with_while(fmt::format("moving {} to {}", graph.vars[v].name, graph.vars[v].place.str()));
    }
    *t = std::move(there);
  }
}

void check_finite(const Graph& graph, const Lowered& lowered, int node) {
  if (!(graph.nodes[node].from == graph.nodes[node].place)) return;  // a copy: other readers tell more about it
  for (int v : lowered.writes[node]) {
    if (!graph.vars[v].speculative) check_finite(*lowered.values[v], graph.vars[v].name);
  }
}

void check_finite(const Value& value, const std::string& name) {
  const auto* rows = value.get<SelectedRows>();
  const Tensor* t = rows ? &rows->value : value.get<Tensor>();
  if (!t || !t->initialized() || !(t->dtype() == DType::kFloat32 || t->dtype() == DType::kFloat64)) return;
  Tensor on_host;
  if (!t->place().on_host()) {
    on_host.copy_from(*t);
    t = &on_host;
  }
  visit_dtype(t->dtype(), [&]<class T>(TypeTag<T>) {
    const T* x = t->data<T>();
    for (int64_t i = 0; i < t->numel(); ++i) {
      AB_CHECK(std::isfinite(static_cast<double>(x[i])), InvalidArgument,
               "FLAGS_check_nan_inf: {} holds {} at element {} of {}{}", name, static_cast<double>(x[i]), i,
               rows ? "the rows " : "", t->shape().str());
    }
  });
}

namespace {

std::string input_text(const GraphVar& var, const Value* value) {
  std::string text = var.name;
  if (const Tensor* t = value ? value->get<Tensor>() : nullptr; t && t->initialized()) {
    text += fmt::format(" {} {}", dtype_name(t->dtype()), t->shape().str());
  } else if (const auto* rows = value ? value->get<SelectedRows>() : nullptr) {
    text += fmt::format(" {} sparse rows of {}", rows->rows.size(), rows->height);
  } else {
    text += " without a value";
  }
  return text + (var.fed ? ", fed" : "");
}

}  // namespace

std::string inputs_of(const Graph& graph, const Lowered& lowered, int node) {
  constexpr size_t kShown = 8;
  const GraphNode& n = graph.nodes[static_cast<size_t>(node)];
  std::vector<std::string> all;
  size_t flat = 0;
  for (const ir::Slot& slot : n.op->inputs) {
    for (size_t i = 0; i < slot.args.size(); ++i, ++flat) {
      const int v = n.ins[flat];
      if (v >= 0) all.push_back(slot.name + " = " + input_text(graph.vars[v], lowered.values[v]));
    }
  }
  const size_t more = all.size() > kShown ? all.size() - kShown : 0;
  all.resize(all.size() - more);
  if (more) all.push_back(fmt::format("and {} more", more));
  return all.empty() ? "" : fmt::format("inputs {}", fmt::join(all, "; "));
}

Error describe_failure(Error error, int node, const Graph& graph, const Lowered& lowered, const RunState& state) {
  if (node >= 0) {
    error.in_op(graph.nodes[node].op->type).with_op(lowered.describe[node]);
    if (const std::string inputs = inputs_of(graph, lowered, node); !inputs.empty()) error.with_note(inputs);
  }
  std::set<std::string> changed;
  for (int i = 0; i < lowered.plan->size(); ++i) {
    if (!state.started(i)) continue;
    for (int v : lowered.writes[i]) {
      const GraphVar& var = graph.vars[v];
      if (!var.desc.persistable) continue;
      changed.insert(graph.replicas > 1 ? fmt::format("{} (replica {})", var.name, var.replica) : var.name);
    }
  }
  std::string list;
  for (const auto& name : changed) list += (list.empty() ? "" : ", ") + name;
  error.with_note("state  persistable variables that had changed before the error: " +
                  (changed.empty() ? "none" : list));
  return error;
}

}  // namespace anabranch
