// opdef/: the op types and their declarations.
#include "opdef/op_def.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "opdef/append_op.h"
#include "opdef/old_forms.h"
#include "opdef/only_computes.h"

namespace anabranch::python {
namespace {

nb::dict slots(const std::vector<SlotDef>& defs) {
  nb::dict out;
  for (const SlotDef& s : defs) out[s.name.c_str()] = nb::make_tuple(s.list, s.optional || s.intermediate);
  return out;
}

nb::object op_slots(const std::string& type) {
  const OpDef* def = find_op_or_null(type);
  if (!def) return nb::none();
  return nb::make_tuple(slots(def->inputs()), slots(def->outputs()));
}

const char* holds_name(Holds holds) {
  switch (holds) {
    case Holds::kTensor: return "tensor";
    case Holds::kTensorOrRows: return "tensor or rows";
    case Holds::kAnything: return "anything";
  }
  return "";
}

nb::list described(const std::vector<SlotDef>& defs) {
  nb::list out;
  for (const SlotDef& s : defs) {
    nb::dict d;
    d["name"] = s.name;
    d["doc"] = s.doc;
    d["list"] = s.list;
    d["optional"] = s.optional;
    d["intermediate"] = s.intermediate;
    d["named_only"] = s.named_only;
    d["holds"] = holds_name(s.holds);
    out.append(d);
  }
  return out;
}

std::vector<std::string> effect_names(unsigned effects) {
  static constexpr std::pair<Effect, const char*> kNames[] = {{kRandom, "random"},
                                                              {kDynamic, "dynamic"},
                                                              {kOrdered, "ordered"},
                                                              {kRunsBlock, "runs a block"},
                                                              {kMaybeUnset, "inputs may be unset"},
                                                              {kKeepsOutputs, "keeps outputs"},
                                                              {kEngineOnly, "engine only"}};
  std::vector<std::string> names;
  for (const auto& [effect, name] : kNames) {
    if (effects & effect) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> trait_names(unsigned traits) {
  static constexpr std::pair<Trait, const char*> kNames[] = {{kRowWise, "row-wise"},
                                                             {kElementwise, "elementwise"},
                                                             {kLinear, "linear"},
                                                             {kMean, "mean"},
                                                             {kView, "view"},
                                                             {kLooksUp, "looks up rows"},
                                                             {kBfloat16, "bfloat16"},
                                                             {kWholeParameter, "whole parameter"},
                                                             {kConstant, "constant"},
                                                             {kServed, "served by the caller"},
                                                             {kSends, "sends to servers"},
                                                             {kOnlyComputes, "only computes"}};
  std::vector<std::string> names;
  for (const auto& [trait, name] : kNames) {
    if (traits & trait) names.emplace_back(name);
  }
  return names;
}

// The error of an attribute's check for a value; empty if it is accepted.
std::string attr_error(const std::string& type, const std::string& name, nb::handle value) {
  const AttrDef* def = find_op(type).find_attr(name);
  AB_CHECK(def != nullptr, NotFound, "op {} declares no attribute {}", type, name);
  try {
    const Attr given = convert_attr(name, attr_from_python(name, value, def->type), def->type);
    if (def->check) def->check(given);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

// The inputs that become outputs, the attributes that prevent it, the inputs that decide shapes, and the one that
// chooses the kernel.
void describe_state(const OpDef& def, nb::dict& out) {
  nb::list updates, frozen_by, shape_from, dtype_from;
  for (const SlotDef& in : def.inputs()) {
    for (const SlotDef& to : def.outputs()) {
      if (def.is_update(in.name, to.name)) updates.append(nb::make_tuple(in.name, to.name));
    }
    ir::Op op;
    op.inputs = {{in.name, {"x"}}};
    if (def.is_dynamic(op) && !def.has(kDynamic)) shape_from.append(in.name);
  }
  for (const AttrDef& attr : def.attrs()) {
    ir::Op op;
    if (attr.type == AttrType::kBoolean) op.attrs[attr.name] = true;
    if (def.is_frozen(op)) frozen_by.append(attr.name);
  }
  ir::Op op;
  for (const SlotDef& in : def.inputs()) op.inputs.push_back({in.name, {"x"}});
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    std::vector<Meta> ins(op.inputs.size());
    ins[i].dtype = DType::kInt64;
    if (def.kernel_dtype(op, ins) == DType::kInt64) dtype_from.append(op.inputs[i].name);
  }
  out["updates"] = updates;
  out["frozen_by"] = frozen_by;
  out["shape_from"] = shape_from;
  out["dtype_from"] = dtype_from;
}

nb::dict op_info(const std::string& type) {
  const OpDef& def = find_op(type);
  nb::list attrs;
  for (const AttrDef& a : def.attrs()) {
    nb::dict d;
    d["name"] = a.name;
    d["doc"] = a.doc;
    d["type"] = attr_type_name(a.type);
    d["required"] = a.required;
    d["default"] = a.required ? nb::object(nb::none()) : attr_to_python(a.value);
    d["checked"] = static_cast<bool>(a.check);
    attrs.append(d);
  }
  nb::dict out;
  out["type"] = def.type();
  out["doc"] = def.doc();
  out["source"] = def.source();
  out["family"] = std::string(op_family(type));
  out["inputs"] = described(def.inputs());
  out["outputs"] = described(def.outputs());
  out["attrs"] = attrs;
  out["effects"] = effect_names(def.effects());
  describe_state(def, out);
  out["traits"] = trait_names(def.traits());
  out["has_grad"] = def.has_grad();
  out["no_grad_reason"] = def.no_grad_reason();
  nb::list shares;
  for (const auto& [in, output] : def.shares()) shares.append(nb::make_tuple(in, output));
  out["shares"] = shares;
  nb::list dtypes;
  for (DType t : def.kernel_dtypes()) dtypes.append(dtype_name(t));
  out["dtypes"] = dtypes;
  nb::list on_devices;
  for (DType t : def.device_dtypes()) on_devices.append(dtype_name(t));
  out["device_dtypes"] = on_devices;
  return out;
}

}  // namespace

void bind_opdef(nb::module_& m) {
  m.def("op_types", &op_types, "All op types, sorted.");
  m.def("op_slots", &op_slots, nb::arg("type"),
        "({input: (list, optional)}, {output: ...}) of an op type; None when there is no such type.");
  m.def("only_computes", &only_computes, nb::arg("type"), "Whether an op type only computes outputs from inputs.");
  m.def("old_forms", &old_forms, nb::arg("op"),
        "What of an op is not as Fluid 1.8.5 writes it, and what it is taken for.");
  m.def("op_info", &op_info, nb::arg("type"), "Everything an op type declares.");
  m.def("attr_error", &attr_error, nb::arg("type"), nb::arg("name"), nb::arg("value"),
        "Why an op type refuses a value of an attribute; empty when it takes it.");
  m.def(
      "infer_op", [](ir::Block& block, const ir::Op& op) { infer_op(block, op); }, nb::arg("block"), nb::arg("op"),
      "Infers the shapes of an op's outputs again.");
}

}  // namespace anabranch::python
