#include "engine/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <set>

#include "device/devices.h"
#include "device/limit.h"
#include "device/purpose.h"
#include "engine/step_memory.h"
#include "engine/step_values.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

template <class Test> bool any_pass(const Layout::Of& of, Test test) {
  return std::any_of(of.passes.begin(), of.passes.end(), test);
}

}  // namespace

Layout::Layout(const Of& of)
    : of_(of),
      shareable_(find_temporaries(
          of.graph, of.lowered, any_pass(of, [](const auto& p) { return p.applied && p.name == kReuseInput.name; }))) {
  const bool trusts = of.lowered.trusts_shapes || any_pass(of, [](const auto& p) { return p.trusts_shapes; });
  std::set<Value*> seen;
  for (size_t v = 0; v < of.graph.vars.size(); ++v) {
    const GraphVar& var = of.graph.vars[v];
    Value* value = of.lowered.values[v];
    const bool given = var.fed || (of.lowered.is_outside[v] && !var.dynamic);
    const bool declared = var.desc.kind == VarKind::kLoDTensor && var.desc.shape.rank() > 0;
    if (trusts && given && declared) declared_.push_back(static_cast<int>(v));
    if (!of.lowered.is_outside[v] || !seen.insert(value).second) continue;
    if (!var.dynamic) {
      watched_.push_back({value, {}});
    } else {
      unwatched_.emplace_back(value, var.place);  // readers of a dynamic value check its shape in every run
    }
  }
}

bool Layout::outside_changed() {
  bool changed = false;
  for (Watched& w : watched_) {
    if (w.form.is_that_of(*w.value)) [[likely]]
      continue;
    w.form = Form(*w.value);
    changed = true;
  }
  return changed;
}

bool Layout::unwatched_moved() const {
  return std::any_of(unwatched_.begin(), unwatched_.end(), [](const auto& u) {
    const Tensor* t = u.first->template get<Tensor>();
    return t && t->initialized() && !(t->place() == u.second);
  });
}

Layout::Made Layout::make(bool parallel) {
  laid_out_ = false;  // until every node is
  if (device::Devices::opened() && !is_in_place(of_.graph, of_.lowered)) return Made::kElsewhere;
  Plan& plan = *of_.lowered.plan;
  Queues* queues = of_.state.queues();
  if (queues) queues->drop_graphs();
  int at = 0;
  const MemoryPlan::Shaping without_memory(shareable_);
  const device::Purpose values([&] { return made_by(of_.graph, at); });
  try {
    check_declared();
    plan.lay_out(&at);
  } catch (Error& e) {
    e.with_op(of_.lowered.describe[at]).with_while("inferring shapes");
    if (const std::string inputs = inputs_of(of_.graph, of_.lowered, at); !inputs.empty()) e.with_note(inputs);
    refuse(e);
    return Made::kRefused;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kResourceExhausted, "out of memory").with_op(of_.lowered.describe[at]);
  }
  outside_changed();  // values created by this plan do not count as changed
  if (memory_.outgrown(shareable_)) {
    place_temporaries(parallel || plan.has_async() || plan.queue_count() > 0);
    if (queues) queues->follow_edges();
  } else {
    memory_.take_blocks(shareable_);
  }
  laid_out_ = true;
  return Made::kReady;
}

void Layout::place_temporaries(bool at_once) {
  const device::Purpose temporaries(
      [this] { return fmt::format("temporaries of the step that fetches {}", fmt::join(of_.fetches, ", ")); });
  try {
    of_.lowered.plan->order(memory_.place(shareable_, at_once));
  } catch (const Error& e) {
    throw without_room(e, memory_.placing(), of_.graph, of_.lowered, shareable_);
  }
}

// Sub-blocks cannot be laid out before they run: their fused ops must not meet other shapes than declared.
void Layout::check_declared() const {
  for (const int v : declared_) {
    const ir::Var& desc = of_.graph.vars[v].desc;
    const auto* t = of_.lowered.values[v]->get<Tensor>();
    AB_CHECK(!t || !t->initialized() || compatible(t->shape(), desc.shape), ShapeMismatch,
             "{} is declared {}, it holds {}", of_.graph.vars[v].name, desc.shape.str(), t->shape().str());
  }
}

// The shapes may be refused by an op that passes created or changed. Without passes the user's own ops decide, and
// format the error.
void Layout::refuse(const Error& error) {
  const bool by_passes = of_.lowered.trusts_shapes || any_pass(of_, [](const auto& p) { return p.changed_ops; });
  // The CPU has more memory than a device, but using it was not requested.
  const bool full = error.kind() == ErrorKind::kResourceExhausted && of_.options.on_devices();
  if (!by_passes || full || error.kind() == ErrorKind::kInternal) throw error;
  // Shapes do not matter if a flag is wrong: this throws its error.
  for (const Place place : of_.options.places) {
    if (!place.on_host()) device::limit_of(device::Devices::get(), place.id);
  }
  refusal_ = fmt::format("{}: {}", error_kind_name(error.kind()), error.message());
  outside_changed();  // these forms were refused
}

void Layout::move_into_place() { anabranch::move_into_place(of_.graph, of_.lowered); }

void Layout::drop() {
  if (of_.state.queues()) of_.state.queues()->drop_graphs();
  for (Value& v : of_.lowered.temporaries) {
    if (Tensor* t = v.get<Tensor>()) t->release();
  }
  for (const auto& set : of_.lowered.blocks) set->drop();
  memory_.drop();
  laid_out_ = false;
}

int64_t Layout::temporary_bytes() const {
  int64_t bytes = memory_.bytes();
  for (const Value& v : of_.lowered.temporaries) {
    if (const Tensor* t = v.get<Tensor>(); t && t->initialized() && !memory_.holds(t->raw()))
      bytes += static_cast<int64_t>(t->bytes());
  }
  return bytes;
}

std::string Layout::explain() const {
  std::string text =
      fmt::format("  memory of temporaries: {} bytes, {} without sharing\n", memory_.bytes(), memory_.unshared_bytes());
  const auto laid =
      std::count_if(shareable_.begin(), shareable_.end(), [](const Temporary& t) { return t.within >= 0; });
  if (laid > 0) text += fmt::format("  results of reshapes in the memory of their operands, not copied: {}\n", laid);
  return text;
}

}  // namespace anabranch
