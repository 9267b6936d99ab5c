// The calls of an AB_OP statement.
#include <algorithm>

#include "opdef/op_def.h"

namespace anabranch {

std::vector<std::string> SlotNames::to_vector() const {
  return held_ ? *held_ : std::vector<std::string>(listed_.begin(), listed_.end());
}

OpDef& OpDef::doc(std::string_view text) {
  doc_ = text;
  return *this;
}

OpDef& OpDef::source(std::string_view paper) {
  source_ = paper;
  return *this;
}

OpDef& OpDef::in(std::string_view name, std::string_view doc) {
  inputs_.push_back({std::string(name), std::string(doc)});
  return *this;
}

OpDef& OpDef::in_list(std::string_view name, std::string_view doc) {
  inputs_.push_back({std::string(name), std::string(doc), true});
  return *this;
}

OpDef& OpDef::in_optional(std::string_view name, std::string_view doc) {
  inputs_.push_back({std::string(name), std::string(doc), false, true});
  return *this;
}

OpDef& OpDef::in_optional_list(std::string_view name, std::string_view doc) {
  inputs_.push_back({std::string(name), std::string(doc), true, true});
  return *this;
}

OpDef& OpDef::out_optional_list(std::string_view name, std::string_view doc) {
  outputs_.push_back({std::string(name), std::string(doc), true, true});
  return *this;
}

OpDef& OpDef::out(std::string_view name, std::string_view doc) {
  outputs_.push_back({std::string(name), std::string(doc)});
  return *this;
}

OpDef& OpDef::out_list(std::string_view name, std::string_view doc) {
  outputs_.push_back({std::string(name), std::string(doc), true});
  return *this;
}

OpDef& OpDef::out_optional(std::string_view name, std::string_view doc) {
  outputs_.push_back({std::string(name), std::string(doc), false, true});
  return *this;
}

OpDef& OpDef::out_intermediate(std::string_view name, std::string_view doc) {
  outputs_.push_back({std::string(name), std::string(doc), false, false, true});
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

OpDef& OpDef::out_named_only(std::string_view name, std::string_view doc) {
  outputs_.push_back({.name = std::string(name), .doc = std::string(doc), .optional = true, .named_only = true});
  return *this;
}

OpDef& OpDef::add_attr(AttrDef def) {
  attrs_.push_back(std::move(def));
  return *this;
}

template <class T> OpDef& OpDef::attr(std::string_view name, AttrValue<T> value, std::string_view doc) {
  Attr held{T(value)};
  const AttrType type = attr_type(held);
  return add_attr({std::string(name), std::string(doc), type, std::move(held), false, {}});
}

template <class T> OpDef& OpDef::check_last(std::function<void(const T&)> check) {
  if (check) attrs_.back().check = [check = std::move(check)](const Attr& a) { check(std::get<T>(a)); };
  return *this;
}

#define AB_INSTANTIATE(T)                                                                          \
  template OpDef& OpDef::attr<T>(std::string_view name, AttrValue<T> value, std::string_view doc); \
  template OpDef& OpDef::check_last<T>(std::function<void(const T&)> check)
AB_EACH_ATTR_TYPE(AB_INSTANTIATE);
#undef AB_INSTANTIATE

OpDef& OpDef::required_attr(std::string_view name, AttrType type, std::string_view doc) {
  return add_attr({std::string(name), std::string(doc), type, Attr{}, true, {}});
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

OpDef& OpDef::may_share(std::string_view in, std::string_view out) {
  shares_.emplace_back(in, out);
  return *this;
}

OpDef& OpDef::updates(std::string_view in, std::string_view out) {
  updates_.emplace_back(in, out);
  return *this;
}

OpDef& OpDef::frozen_by(std::string_view attr) {
  freezing_attrs_.emplace_back(attr);
  return *this;
}

OpDef& OpDef::shape_from(std::string_view in) {
  shape_slots_.emplace_back(in);
  return *this;
}

OpDef& OpDef::infer(void (*fn)(InferContext&)) { return infer(std::function<void(InferContext&)>(fn)); }

OpDef& OpDef::infer(std::function<void(InferContext&)> fn) {
  infer_ = std::move(fn);
  return *this;
}

OpDef& OpDef::grad(void (*fn)(GradContext&)) { return grad(std::function<void(GradContext&)>(fn)); }

OpDef& OpDef::grad(std::function<void(GradContext&)> fn) {
  grad_ = std::move(fn);
  return *this;
}

OpDef& OpDef::no_grad(std::string_view why) {
  no_grad_ = why;
  return *this;
}

OpDef& OpDef::dtype_of_input(std::string_view slot) {
  dtype_slot_ = slot;
  return *this;
}

OpDef& OpDef::tile(TileOp tile) {
  tile_ = std::move(tile);
  return *this;
}

OpDef& OpDef::tile(std::string_view x, int64_t grain, UnaryLoop loop) { return tile(tile_of(x, grain, loop)); }

OpDef& OpDef::tile(std::string_view a, std::string_view b, int64_t grain, BinaryLoop loop) {
  return tile(tile_of(a, b, grain, loop));
}

OpDef& OpDef::flops(std::function<double(const WorkContext&)> fn) {
  flops_ = std::move(fn);
  return *this;
}

OpDef& OpDef::images(SlotNames slots, std::string_view attr) {
  images_.push_back({slots.to_vector(), std::string(attr)});
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
// Errors of a factory name the op of its kernel.
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

OpDef& OpDef::add_kernel(On where, DType dtype, KernelFactory factory) {
  auto& kernels = where == On::kCpu ? kernels_ : device_kernels_;
  AB_CHECK(kernels.emplace(dtype, naming(std::move(factory))).second, Internal, "op {} has two kernels{} for {}", type_,
           where == On::kCpu ? "" : " of devices", dtype_name(dtype));
  return *this;
}

OpDef& OpDef::add_plain_kernels(On where, std::span<const PlainKernel> kernels) {
  for (const PlainKernel& kernel : kernels) add_kernel(where, kernel.dtype, kernel.factory);
  return *this;
}

OpDef& OpDef::add_dtype_kernels(On where, std::span<const DType> dtypes, const DTypeFactory& factory) {
  for (const DType dtype : dtypes) {
    add_kernel(where, dtype, [dtype, factory](const KernelArgs& op) { return factory(dtype, op); });
  }
  return *this;
}

OpDef& OpDef::cpu_of(DType dtype, KernelFactory factory) { return add_kernel(On::kCpu, dtype, std::move(factory)); }

OpDef& OpDef::cpu_any(KernelFactory factory) {
  any_kernel_ = naming(std::move(factory));
  return *this;
}

OpDef& OpDef::device_any(KernelFactory factory) {
  any_device_kernel_ = naming(std::move(factory));
  return *this;
}

}  // namespace anabranch
