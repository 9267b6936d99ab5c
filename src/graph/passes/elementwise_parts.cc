#include "graph/passes/elementwise_parts.h"

#include <algorithm>

#include "graph/on_device.h"
#include "opdef/device_steps.h"
#include "opdef/fused_ops.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

using Arg = ElementwisePart::Arg;
constexpr std::string_view kInSlots[] = {"X", "Y", "Out", "Out@GRAD"};

// The variables in slots of these names, in the order of the names; false if there are other slots.
template <size_t kCount>
bool gather(const std::vector<ir::Slot>& slots, const std::vector<int>& ids, const std::string_view (&names)[kCount],
            std::vector<Arg>* out) {
  size_t at = 0;
  std::vector<Arg> found[kCount];
  for (const ir::Slot& s : slots) {
    const auto name = std::find_if(std::begin(names), std::end(names), [&](auto n) { return s.name == n; });
    for (size_t i = 0; i < s.args.size(); ++i, ++at) {
      if (ids[at] < 0) continue;
      if (name == std::end(names)) return false;
      found[name - std::begin(names)].push_back({*name, ids[at]});
    }
  }
  for (const auto& args : found) out->insert(out->end(), args.begin(), args.end());
  return true;
}

bool laid_as_a_whole(const Shape& s) {  // no extents of 1 between its other extents
  int first = 0, last = s.rank() - 1;
  while (first < s.rank() && s[first] == 1) ++first;
  while (last > first && s[last] == 1) --last;
  for (int i = first; i <= last; ++i) {
    if (s[i] == 1) return false;
  }
  return true;
}

}  // namespace

bool ElementwiseParts::is_steady(int var, DType dtype) const {
  const GraphVar& v = graph_.vars[var];
  return v.desc.kind == VarKind::kLoDTensor && v.desc.dtype == dtype && !v.dynamic;
}

// Computed by this node only, for this run only.
bool ElementwiseParts::is_result(int var, DType dtype) const {
  const GraphVar& v = graph_.vars[var];
  return is_steady(var, dtype) && !v.desc.persistable && !v.fed && edit_.uses.writers(var).size() == 1;
}

InferContext ElementwiseParts::inferred(const GraphNode& node) const {
  InferContext c(find_op(node.op->type), *node.op, false);
  for (size_t i = 0; i < node.ins.size(); ++i) {
    if (node.ins[i] < 0) continue;
    c.ins[i].shape = graph_.vars[node.ins[i]].desc.shape;
    c.ins[i].lod_level = static_cast<int>(i) + 1;
  }
  find_op(node.op->type).run_infer(c);
  return c;
}

bool ElementwiseParts::device_runs(const GraphNode& node) const {
  return runs_on_device(graph_, node, metas_of(graph_, node));
}

bool ElementwiseParts::is_step(int i) const {
  const GraphNode& node = graph_.nodes[i];
  if (!find_op(node.op->type).tile() || node.op->has_attr("blocked")) return false;
  if (!on_device(node)) return true;
  if (there_[i] < 0) there_[i] = device_step_of(node.op->type) && device_runs(node);
  return there_[i] != 0;
}

bool ElementwiseParts::fits(int i, ElementwisePart* part) const {
  const GraphNode& node = graph_.nodes[i];
  ElementwisePart p;
  if (!is_step(i) || !is_plain(node) || !node.tokens.empty() || !gather(node.op->inputs, node.ins, kInSlots, &p.ins) ||
      !gather(node.op->outputs, node.outs, kElementwiseOuts, &p.outs)) {
    return false;
  }
  if (p.ins.empty() || p.ins.size() > fused::kMaxArgs || p.outs.empty()) return false;
  p.shape = graph_.vars[p.outs[0].var].desc.shape;
  p.dtype = graph_.vars[p.outs[0].var].desc.dtype;
  const bool narrow = p.dtype == DType::kFloat16 || p.dtype == DType::kBFloat16;
  if (p.dtype != DType::kFloat32 && !(narrow && on_device(node))) return false;
  if (!shapes_fit(node, p)) return false;
  if (part) *part = std::move(p);
  return true;
}

bool ElementwiseParts::shapes_fit(const GraphNode& node, const ElementwisePart& p) const {
  const bool joins = node.op->has_attr("axis");
  for (const Arg& out : p.outs) {
    if (!is_result(out.var, p.dtype) || !(graph_.vars[out.var].desc.shape == p.shape)) return false;
  }
  for (const Arg& in : p.ins) {
    const Shape& shape = graph_.vars[in.var].desc.shape;
    const bool spreads = joins && in.slot == kInSlots[1] && shape.rank() <= p.shape.rank() && laid_as_a_whole(shape);
    if (!is_steady(in.var, p.dtype) || !(shape == p.shape || spreads)) return false;
  }
  if (p.shape.rank() == 0) return false;
  if (!joins) return true;
  try {
    inferred(node);
    return true;
  } catch (const Error&) {  // programs may declare variables that they do not feed
    return false;
  }
}

// Whether too many results are live at once if a step after the others reads these.
bool ElementwiseRoom::keeps_too_much(const std::vector<int>& reads, int step) const {
  std::vector<int> kept = kept_;
  kept.resize(static_cast<size_t>(step), 0);
  for (const int var : reads) {
    const Value& value = values_.at(var);
    for (int s = value.last; s < step; ++s) {
      if (++kept[static_cast<size_t>(s)] > fused::kMaxKept) return true;
    }
  }
  return false;
}

bool ElementwiseRoom::take(const ElementwisePart& part) {
  const int count = static_cast<int>(part.outs.size()), step = steps_ + count - 1;  // the last step that reads it
  if (steps_ + count > (on_device_ ? fused::kMaxStepsOnDevices : fused::kMaxSteps)) return false;
  std::vector<int> reads;
  std::set<int> fresh;
  for (const Arg& in : part.ins) {
    if (!values_.count(in.var)) {
      if (!inputs_.count(in.var)) fresh.insert(in.var);
    } else if (std::find(reads.begin(), reads.end(), in.var) == reads.end()) {
      reads.push_back(in.var);
    }
  }
  if (inputs_.size() + fresh.size() > fused::kMaxInputs) return false;
  if (on_device_ && keeps_too_much(reads, step)) return false;
  inputs_.insert(fresh.begin(), fresh.end());
  kept_.resize(static_cast<size_t>(step) + 1, 0);
  for (const int var : reads) {
    Value& value = values_[var];
    for (int s = value.last; s < step; ++s) ++kept_[static_cast<size_t>(s)];
    value.last = step;
  }
  for (int k = 0; k < count; ++k) values_[part.outs[static_cast<size_t>(k)].var] = {steps_ + k, steps_ + k};
  steps_ += count;
  return true;
}

}  // namespace anabranch
