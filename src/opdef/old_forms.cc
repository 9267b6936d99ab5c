#include "opdef/old_forms.h"

#include <algorithm>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

template <class T> Attr list_of(const T& item) { return std::vector<T>{item}; }

void add_missing_slots(const char* side, const std::vector<SlotDef>& declared, const std::vector<ir::Slot>& given,
                       std::vector<std::string>* out) {
  for (const SlotDef& slot : declared) {
    const auto is_it = [&](const ir::Slot& s) { return s.name == slot.name; };
    if (slot.optional && side == std::string_view("output")) continue;  // 1.8.5 leaves those out, too
    if (std::none_of(given.begin(), given.end(), is_it)) {
      out->push_back(fmt::format("{} {}: not given", side, slot.name));
    }
  }
}

}  // namespace

Attr as_declared_now(const Attr& value, AttrType declared) {
  switch (declared) {
    case AttrType::kInts:
    case AttrType::kLongs:
      if (const auto* i = std::get_if<int32_t>(&value)) return list_of(*i);
      if (const auto* l = std::get_if<int64_t>(&value)) return list_of(*l);
      return value;
    case AttrType::kFloats:
      if (const auto* f = std::get_if<float>(&value)) return list_of(*f);
      return value;
    case AttrType::kStrings:
      if (const auto* s = std::get_if<std::string>(&value)) return list_of(*s);
      return value;
    default: return value;
  }
}

std::vector<std::string> old_forms(const ir::Op& op) {
  std::vector<std::string> out;
  const OpDef* def = find_op_or_null(op.type);
  if (!def) return out;
  for (const AttrDef& attr : def->attrs()) {
    const auto it = op.attrs.find(attr.name);
    if (it == op.attrs.end()) {
      if (!attr.required)
        out.push_back(fmt::format("attribute {}: not given, taken as {}", attr.name, attr_str(attr.value)));
    } else if (attr_type(it->second) != attr.type) {
      out.push_back(fmt::format("attribute {}: {}, taken as {}", attr.name, attr_type_name(attr_type(it->second)),
                                attr_type_name(attr.type)));
    }
  }
  add_missing_slots("input", def->inputs(), op.inputs, &out);
  add_missing_slots("output", def->outputs(), op.outputs, &out);
  return out;
}

}  // namespace anabranch
