#include "opdef/op_def.h"

#include <fmt/ranges.h>

#include <algorithm>

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

bool OpDef::is_update(std::string_view in, std::string_view out) const {
  if (out.size() == in.size() + 3 && out.starts_with(in) && out.ends_with("Out")) return true;
  return std::any_of(updates_.begin(), updates_.end(),
                     [&](const auto& pair) { return pair.first == in && pair.second == out; });
}

OpDef& OpDef::frozen_by(std::string attr) {
  freezing_attrs_.push_back(std::move(attr));
  return *this;
}

bool OpDef::is_frozen(const ir::Op& op) const {
  return std::any_of(freezing_attrs_.begin(), freezing_attrs_.end(),
                     [&](const std::string& attr) { return op.has_attr(attr) && op.attr<bool>(attr); });
}

OpDef& OpDef::shape_from(std::string in) {
  shape_slots_.push_back(std::move(in));
  return *this;
}

bool OpDef::is_dynamic(const ir::Op& op) const {
  return has(kDynamic) || std::any_of(shape_slots_.begin(), shape_slots_.end(), [&](const std::string& slot) {
           const auto& args = op.input(slot);
           return std::any_of(args.begin(), args.end(), [](const std::string& a) { return a != ir::kEmptyVar; });
         });
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

void OpDef::run_infer(InferContext& c) const {
  try {
    infer_(c);
  } catch (Error& e) {
    e.in_op(type_);
    throw;
  }
}

namespace {
template <class T> const T* find_named(const std::vector<T>& all, std::string_view name) {
  auto it = std::find_if(all.begin(), all.end(), [&](const T& x) { return x.name == name; });
  return it == all.end() ? nullptr : &*it;
}
}  // namespace

const SlotDef* OpDef::find_input(std::string_view name) const { return find_named(inputs_, name); }
const SlotDef* OpDef::find_output(std::string_view name) const { return find_named(outputs_, name); }
const AttrDef* OpDef::find_attr(std::string_view name) const { return find_named(attrs_, name); }

void OpDef::check_kind(std::string_view slot, const std::string& variable, VarKind kind) const {
  const SlotDef* def = find_input(slot);
  const Holds holds = def ? def->holds : Holds::kAnything;
  const bool taken = holds == Holds::kAnything || kind == VarKind::kLoDTensor ||
                     (holds == Holds::kTensorOrRows && kind == VarKind::kSelectedRows);
  AB_CHECK(taken, InvalidArgument, "{}: {} must be a LOD_TENSOR{}, got {}, which is a {}", type_, slot,
           holds == Holds::kTensorOrRows ? " or SELECTED_ROWS" : "", variable, var_kind_name(kind));
}

std::vector<DType> OpDef::kernel_dtypes() const {
  std::vector<DType> all;
  for (const auto& [dtype, factory] : kernels_) all.push_back(dtype);
  return all;
}

DType OpDef::kernel_dtype(const ir::Op& op, const std::vector<Meta>& ins) const {
  size_t at = 0;
  for (const auto& slot : op.inputs) {
    for (const auto& arg : slot.args) {
      if (arg != ir::kEmptyVar && (dtype_slot_.empty() || slot.name == dtype_slot_)) return ins[at].dtype;
      ++at;
    }
  }
  if (op.has_attr("dtype")) return dtype_from_number(op.attr<int32_t>("dtype"));
  return DType::kFloat32;
}

const KernelFactory& OpDef::kernel(DType dtype) const {
  auto it = kernels_.find(dtype);
  if (it != kernels_.end()) return it->second;
  if (any_kernel_) return any_kernel_;
  std::vector<std::string> have;
  for (const auto& [d, factory] : kernels_) have.push_back(dtype_name(d));
  AB_THROW(Unsupported, "{} of {}: there are kernels for {}", type_, dtype_name(dtype), fmt::join(have, ", "));
}

void OpDef::check_complete() const {
  const auto demand = [&](bool ok, const char* what) {
    AB_CHECK(ok, Internal, "op {} is declared without {}", type_, what);
  };
  demand(!doc_.empty(), "documentation");
  demand(static_cast<bool>(infer_), "a shape function");
  demand(!kernels_.empty() || any_kernel_, "a kernel");
  demand(static_cast<bool>(grad_) != !no_grad_.empty(), "a gradient or the reason why it has none (exactly one)");
  for (const auto& slot : shape_slots_) demand(find_input(slot) != nullptr, "the slot that shape_from names");
  for (const auto& [in, out] : shares_) {
    demand(find_input(in) && find_output(out), "the slots that may_share names");
  }
  for (const auto& [in, out] : updates_) {
    demand(find_input(in) && find_output(out), "the slots that updates names");
  }
}

}  // namespace anabranch
