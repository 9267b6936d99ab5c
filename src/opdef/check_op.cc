#include "opdef/check_op.h"

#include <algorithm>

#include "opdef/check_attrs.h"
#include "opdef/old_forms.h"

namespace anabranch {
namespace {

bool is_gradient(const std::string& slot) { return slot.ends_with(ir::kGradSuffix); }

// Arguments that the kernel dereferences unconditionally must exist: handles of missing arguments point nowhere.
void check_slot(const OpDef& op, bool input, const SlotDef& def, const std::vector<std::string>& args) {
  const char* side = input ? "input" : "output";
  AB_CHECK(def.list || args.size() <= 1, InvalidArgument, "{}: {} {} takes one variable, {} are given", op.type(), side,
           def.name, args.size());
  // Gradient ops omit gradients that are not needed, and check before they write.
  const bool may_miss = def.optional || def.intermediate || (!input && (def.list || is_gradient(def.name)));
  const bool whole = input && def.list && args.size() > 1 && !is_gradient(def.name);  // kernels read every entry of it
  if ((may_miss && !whole) || (input && op.has(kMaybeUnset))) return;
  AB_CHECK(!args.empty() || may_miss, InvalidArgument, "{}: {} {} is not given", op.type(), side, def.name);
  for (const auto& arg : args) {
    AB_CHECK(arg != ir::kEmptyVar, InvalidArgument, "{}: {} {} must be a variable, got {}", op.type(), side, def.name,
             ir::kEmptyVar);
  }
}

// Slots in schema order, missing ones as empty lists, so that positions are stable.
std::vector<ir::Slot> order_slots(const OpDef& op, bool input, std::vector<ir::Slot> given) {
  std::vector<ir::Slot> ordered;
  for (const SlotDef& def : input ? op.inputs() : op.outputs()) {
    auto it = std::find_if(given.begin(), given.end(), [&](const ir::Slot& s) { return s.name == def.name; });
    std::vector<std::string> args;
    if (it != given.end()) {
      args = std::move(it->args);
      given.erase(it);
    }
    check_slot(op, input, def, args);
    ordered.push_back({def.name, std::move(args)});
  }
  for (const ir::Slot& s : given) {  // files list slots of other versions, without arguments
    AB_CHECK(s.args.empty(), InvalidArgument, "{} has no {} {}", op.type(), input ? "input" : "output", s.name);
  }
  return ordered;
}

// Two results in one variable would leave an arbitrary one of them. The engine names one variable of several replicas.
void check_outputs_differ(const OpDef& def, const ir::Op& op) {
  if (def.has(kRunsBlock) || def.has(kEngineOnly)) return;
  auto names = op.output_args();
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  AB_CHECK(twice == names.end(), InvalidArgument, "the outputs must be different variables, got {} twice", *twice);
}

void check_value(const OpDef& def, const AttrDef& attr, const Attr& value) {
  if (!attr.check) return;
  try {
    attr.check(value);
  } catch (Error& e) {
    e.in_op(def.type());
    throw;
  }
}

void fill_attrs(const OpDef& def, ir::Op& op) {
  for (const AttrDef& attr : def.attrs()) {
    auto it = op.attrs.find(attr.name);
    if (it == op.attrs.end()) {
      AB_CHECK(!attr.required, InvalidArgument, "{}: attribute {} is not given", op.type, attr.name);
      op.attrs.emplace(attr.name, attr.value);
      continue;
    }
    it->second = convert_attr(attr.name, as_declared_now(it->second, attr.type), attr.type);
    check_value(def, attr, it->second);
  }
}

// Missing outputs that an older release did not have: other outputs define what the op does.
void add_newer_outputs(ir::Op& op) {
  const OpDef& def = find_op(op.type);
  const auto given = [&](const SlotDef& slot) { return !op.output(slot.name).empty(); };
  if (std::none_of(def.outputs().begin(), def.outputs().end(), given)) return;
  for (const SlotDef& slot : def.outputs()) {
    if (slot.list || slot.optional || slot.intermediate || slot.named_only || given(slot)) continue;
    op.set_output(slot.name, {std::string(kDiscarded) + slot.name});
  }
}

// Kernels compute intermediate results even if they are not needed.
void discard_unwanted(ir::Op& op) {
  const OpDef& def = find_op(op.type);
  int count = 0;
  for (ir::Slot& slot : op.outputs) {
    const SlotDef& declared = *def.find_output(slot.name);
    if (!declared.intermediate || declared.optional) continue;
    if (slot.args.empty()) slot.args.push_back(ir::kEmptyVar);
    for (std::string& arg : slot.args) {
      if (arg == ir::kEmptyVar) arg = kDiscarded + std::to_string(count++);
    }
  }
}

}  // namespace

void refuse_engine_only(const ir::Op& op) {
  AB_CHECK(!find_op(op.type).has(kEngineOnly), Unsupported,
           "{} is for passes and the engine only: a program must not contain it", op.type);
}

void check_attrs(ir::Op& op) { fill_attrs(find_op(op.type), op); }

void check_op(ir::Op& op) {
  const OpDef& def = find_op(op.type);
  fill_attrs(def, op);
  op.inputs = order_slots(def, true, std::move(op.inputs));
  op.outputs = order_slots(def, false, std::move(op.outputs));
  check_outputs_differ(def, op);
}

void check_made(const ir::Op& op) {
  const OpDef& def = find_op(op.type);
  const auto check_slots = [&](const std::vector<ir::Slot>& given, bool input) {
    for (const ir::Slot& slot : given) {
      const SlotDef* declared = input ? def.find_input(slot.name) : def.find_output(slot.name);
      AB_CHECK(declared != nullptr, InvalidArgument, "there is no slot {}", slot.name);
    }
    for (const SlotDef& slot : input ? def.inputs() : def.outputs()) {
      check_slot(def, input, slot, input ? op.input(slot.name) : op.output(slot.name));
    }
  };
  check_slots(op.inputs, true);
  check_slots(op.outputs, false);
  for (const AttrDef& attr : def.attrs()) {
    const auto it = op.attrs.find(attr.name);
    AB_CHECK(it != op.attrs.end(), InvalidArgument, "attribute {} must be given", attr.name);
    AB_CHECK(attr_type(it->second) == attr.type, InvalidArgument, "attribute {} must be {}, got {}", attr.name,
             attr_type_name(attr.type), attr_type_name(attr_type(it->second)));
    check_value(def, attr, it->second);
  }
}

std::vector<std::string> written_args(const ir::Op& op) {
  const OpDef* def = find_op_or_null(op.type);
  std::vector<std::string> written;
  for (const ir::Slot& slot : op.outputs) {
    const SlotDef* found = def ? def->find_output(slot.name) : nullptr;
    if (!found || !found->named_only) written.insert(written.end(), slot.args.begin(), slot.args.end());
  }
  return written;
}

ir::OpRef checked_copy(const ir::Op& op) {
  auto copy = std::make_shared<ir::Op>(op);
  try {
    refuse_engine_only(*copy);
    add_newer_outputs(*copy);
    check_op(*copy);
    discard_unwanted(*copy);
    for (ir::Slot& slot : copy->outputs) {
      if (find_op(op.type).find_output(slot.name)->named_only) slot.args.clear();
    }
  } catch (Error& e) {
    e.with_op(op.describe(-1, 0)).with_while("checking the op against its declaration");
    throw;
  }
  return copy;
}

}  // namespace anabranch
