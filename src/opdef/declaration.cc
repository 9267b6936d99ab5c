// What an AB_OP statement chains.
#include <algorithm>

#include "opdef/op_def.h"

namespace anabranch {

OpDef& OpDef::doc(std::string text) {
  doc_ = std::move(text);
  return *this;
}

OpDef& OpDef::source(std::string paper) {
  source_ = std::move(paper);
  return *this;
}

OpDef& OpDef::in(std::string name, std::string doc) {
  inputs_.push_back({std::move(name), std::move(doc)});
  return *this;
}

OpDef& OpDef::in_list(std::string name, std::string doc) {
  inputs_.push_back({std::move(name), std::move(doc), true});
  return *this;
}

OpDef& OpDef::in_optional(std::string name, std::string doc) {
  inputs_.push_back({std::move(name), std::move(doc), false, true});
  return *this;
}

OpDef& OpDef::in_optional_list(std::string name, std::string doc) {
  inputs_.push_back({std::move(name), std::move(doc), true, true});
  return *this;
}

OpDef& OpDef::out_optional_list(std::string name, std::string doc) {
  outputs_.push_back({std::move(name), std::move(doc), true, true});
  return *this;
}

OpDef& OpDef::out(std::string name, std::string doc) {
  outputs_.push_back({std::move(name), std::move(doc)});
  return *this;
}

OpDef& OpDef::out_list(std::string name, std::string doc) {
  outputs_.push_back({std::move(name), std::move(doc), true});
  return *this;
}

OpDef& OpDef::out_optional(std::string name, std::string doc) {
  outputs_.push_back({std::move(name), std::move(doc), false, true});
  return *this;
}

OpDef& OpDef::out_intermediate(std::string name, std::string doc) {
  outputs_.push_back({std::move(name), std::move(doc), false, false, true});
  return *this;
}

OpDef& OpDef::takes(std::string_view in, Holds what) {
  auto it = std::find_if(inputs_.begin(), inputs_.end(), [&](const SlotDef& s) { return s.name == in; });
  AB_CHECK(it != inputs_.end() || follows_, Internal, "op {} has no input {} that could take something", type_, in);
  if (it == inputs_.end()) {
    takes_.emplace_back(in, what);
  } else {
    it->holds = what;
  }
  return *this;
}

OpDef& OpDef::out_named_only(std::string name, std::string doc) {
  outputs_.push_back({.name = std::move(name), .doc = std::move(doc), .optional = true, .named_only = true});
  return *this;
}

OpDef& OpDef::add_attr(AttrDef def) {
  attrs_.push_back(std::move(def));
  return *this;
}

OpDef& OpDef::required_attr(std::string name, AttrType type, std::string doc) {
  return add_attr({std::move(name), std::move(doc), type, Attr{}, true, {}});
}

OpDef& OpDef::like(const OpDef& other) {
  inputs_.insert(inputs_.end(), other.inputs_.begin(), other.inputs_.end());
  outputs_.insert(outputs_.end(), other.outputs_.begin(), other.outputs_.end());
  attrs_of(other);
  shares_.insert(shares_.end(), other.shares_.begin(), other.shares_.end());
  updates_.insert(updates_.end(), other.updates_.begin(), other.updates_.end());
  freezing_attrs_.insert(freezing_attrs_.end(), other.freezing_attrs_.begin(), other.freezing_attrs_.end());
  shape_slots_.insert(shape_slots_.end(), other.shape_slots_.begin(), other.shape_slots_.end());
  images_.insert(images_.end(), other.images_.begin(), other.images_.end());
  effects_ |= other.effects_;
  traits_ |= other.traits_;
  dtype_slot_ = other.dtype_slot_;
  infer_ = other.infer_;
  flops_ = other.flops_;
  return *this;
}

OpDef& OpDef::attrs_of(const OpDef& other) {
  attrs_.insert(attrs_.end(), other.attrs_.begin(), other.attrs_.end());
  return *this;
}

OpDef& OpDef::may_share(std::string in, std::string out) {
  shares_.emplace_back(std::move(in), std::move(out));
  return *this;
}

OpDef& OpDef::updates(std::string in, std::string out) {
  updates_.emplace_back(std::move(in), std::move(out));
  return *this;
}

OpDef& OpDef::frozen_by(std::string attr) {
  freezing_attrs_.push_back(std::move(attr));
  return *this;
}

OpDef& OpDef::shape_from(std::string in) {
  shape_slots_.push_back(std::move(in));
  return *this;
}

OpDef& OpDef::infer(std::function<void(InferContext&)> fn) {
  infer_ = std::move(fn);
  return *this;
}

OpDef& OpDef::grad(std::function<void(GradContext&)> fn) {
  grad_ = std::move(fn);
  return *this;
}

OpDef& OpDef::no_grad(std::string why) {
  no_grad_ = std::move(why);
  return *this;
}

OpDef& OpDef::dtype_of_input(std::string slot) {
  dtype_slot_ = std::move(slot);
  return *this;
}

OpDef& OpDef::tile(TileOp tile) {
  tile_ = std::move(tile);
  return *this;
}

OpDef& OpDef::flops(std::function<double(const WorkContext&)> fn) {
  flops_ = std::move(fn);
  return *this;
}

OpDef& OpDef::images(std::vector<std::string> slots, std::string attr) {
  images_.push_back({std::move(slots), std::move(attr)});
  return *this;
}

OpDef& OpDef::copies_when(OfOp<bool> fn) {
  copies_ = std::move(fn);
  return *this;
}

OpDef& OpDef::merges(OfOp<StateMerge> fn) {
  merges_ = std::move(fn);
  return *this;
}

OpDef& OpDef::merges(StateMerge how) {
  return merges([how](const ir::Op&) { return how; });
}

namespace {
// Errors of a factory name the op whose kernel it makes.
KernelFactory naming(KernelFactory factory) {
  return [factory = std::move(factory)](const KernelArgs& op) {
    try {
      return factory(op);
    } catch (Error& e) {
      e.in_op(op.op().type);
      throw;
    }
  };
}
}  // namespace

OpDef& OpDef::add_kernel(DType dtype, KernelFactory factory) {
  AB_CHECK(kernels_.emplace(dtype, naming(std::move(factory))).second, Internal, "op {} has two kernels for {}", type_,
           dtype_name(dtype));
  return *this;
}

OpDef& OpDef::cpu_any(KernelFactory factory) {
  any_kernel_ = naming(std::move(factory));
  return *this;
}

OpDef& OpDef::add_device_kernel(DType dtype, KernelFactory factory) {
  AB_CHECK(device_kernels_.emplace(dtype, naming(std::move(factory))).second, Internal,
           "op {} has two kernels of devices for {}", type_, dtype_name(dtype));
  return *this;
}

OpDef& OpDef::device_any(KernelFactory factory) {
  any_device_kernel_ = naming(std::move(factory));
  return *this;
}

}  // namespace anabranch
