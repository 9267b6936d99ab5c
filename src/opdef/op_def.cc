#include "opdef/op_def.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace anabranch {

void OpDef::run_infer(InferContext& c) const {
  try {
    infer_(c);
  } catch (Error& e) {
    e.in_op(type_);
    throw;
  }
}

bool OpDef::is_update(std::string_view in, std::string_view out) const {
  if (out.size() == in.size() + 3 && out.starts_with(in) && out.ends_with("Out")) return true;
  return std::any_of(updates_.begin(), updates_.end(),
                     [&](const auto& pair) { return pair.first == in && pair.second == out; });
}

bool OpDef::is_frozen(const ir::Op& op) const {
  return std::any_of(freezing_attrs_.begin(), freezing_attrs_.end(),
                     [&](const std::string& attr) { return op.has_attr(attr) && op.attr<bool>(attr); });
}

bool OpDef::is_dynamic(const ir::Op& op) const {
  return has(kDynamic) || std::any_of(shape_slots_.begin(), shape_slots_.end(), [&](const std::string& slot) {
           const auto& args = op.input(slot);
           return std::any_of(args.begin(), args.end(), [](const std::string& a) { return a != ir::kEmptyVar; });
         });
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

std::vector<DType> OpDef::device_dtypes() const {
  std::vector<DType> all;
  for (const DType dtype : {DType::kBool, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    if (has_device_kernel(dtype)) all.push_back(dtype);
  }
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

const KernelFactory& OpDef::device_kernel(DType dtype) const {
  const auto it = device_kernels_.find(dtype);
  if (it != device_kernels_.end()) return it->second;
  AB_CHECK(any_device_kernel_, Unsupported, "{} of {}: there is no kernel for devices", type_, dtype_name(dtype));
  return any_device_kernel_;
}

void OpDef::check_complete() const {
  const auto demand = [&](bool ok, const char* what) {
    AB_CHECK(ok, Internal, "op {} is declared without {}", type_, what);
  };
  demand(!doc_.empty(), "documentation");
  demand(static_cast<bool>(infer_), "a shape function");
  demand(!kernels_.empty() || any_kernel_ || any_device_kernel_, "a kernel");
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
