#include "ops/declare/shape_args.h"

namespace anabranch {

std::vector<int64_t> integers_of(const Tensor& tensor, const char* what) {
  const auto as_vector = [&](const auto* p) { return std::vector<int64_t>(p, p + tensor.numel()); };
  if (tensor.dtype() == DType::kInt32) return as_vector(tensor.data<int32_t>());
  AB_CHECK(tensor.dtype() == DType::kInt64, InvalidArgument, "{} must hold int32 or int64, got {}", what,
           dtype_name(tensor.dtype()));
  return as_vector(tensor.data<int64_t>());
}

std::vector<int64_t> int_attr(const ir::Op& op, const std::string& name) {
  auto it = op.attrs.find(name);
  AB_CHECK(it != op.attrs.end(), NotFound, "op {} has no attribute {}", op.type, name);
  if (const auto* ints = std::get_if<std::vector<int32_t>>(&it->second)) return {ints->begin(), ints->end()};
  return attr_as<std::vector<int64_t>>(name, it->second);
}

const Tensor* scalar_in(const InferContext& c, const char* slot) {
  const Tensor* t = c.in(slot).value;
  AB_CHECK(!t || t->numel() == 1, ShapeMismatch, "{} must be [1], got {}", slot, c.in(slot).shape.str());
  return t;
}

int64_t scalar_or(const InferContext& c, const char* slot, int64_t attr) {
  if (!c.has_in(slot)) return attr;
  const Tensor* t = scalar_in(c, slot);
  return t ? integers_of(*t, slot)[0] : kUnknown;
}

IntArg int_arg(const InferContext& c, std::string_view tensor_slot, std::string_view list_slot,
               const std::vector<int64_t>& attr, int64_t unknown, size_t count) {
  if (!tensor_slot.empty() && c.has_in(tensor_slot)) {
    const Meta& m = c.in(tensor_slot);
    if (m.value) return {integers_of(*m.value, "a shape tensor")};
    const int64_t n = m.shape.numel();
    AB_CHECK(n <= kMaxRank, InvalidArgument, "a shape tensor must have at most {} elements, got {}", kMaxRank, n);
    const size_t values = n >= 0 ? static_cast<size_t>(n) : count > 0 ? count : attr.size();
    return {std::vector<int64_t>(values, unknown), false};
  }
  if (list_slot.empty() || !c.has_in(list_slot)) return {attr};
  IntArg arg;
  for (int i = 0; i < c.n_in(list_slot); ++i) {
    const Meta& m = c.in(list_slot, i);
    if (!m.value) {  // the attribute has the values that the program knows, and -1 for the rest
      const auto at = static_cast<size_t>(i);
      const bool said = attr.size() == static_cast<size_t>(c.n_in(list_slot)) && attr[at] != -1;
      arg.values.push_back(said ? attr[at] : unknown);
      arg.known = false;
      continue;
    }
    AB_CHECK(m.value->numel() == 1, ShapeMismatch, "{}[{}] must have one element, got {}", list_slot, i,
             m.value->shape().str());
    arg.values.push_back(integers_of(*m.value, "a shape tensor")[0]);
  }
  return arg;
}

}  // namespace anabranch
