#include "ops/declare/checks.h"

#include "base/counted.h"

namespace anabranch {

void check_rank(const InferContext& c, std::string_view slot, int low, int high) {
  const Shape& s = c.in(slot).shape;
  AB_CHECK(s.rank() >= low && s.rank() <= high, InvalidArgument, "{} must have {}{}, got {}", slot,
           high > low ? fmt::format("{} to ", low) : "", counted(high, "axis", "axes"), s.str());
}

void check_same_shape(const InferContext& c, std::string_view a, std::string_view b) {
  AB_CHECK(compatible(c.in(a).shape, c.in(b).shape), ShapeMismatch, "{} and {} must have the same shape, got {} and {}",
           a, b, c.in(a).shape.str(), c.in(b).shape.str());
}

void check_dtype(const InferContext& c, std::string_view slot, DType needed) {
  AB_CHECK(c.in(slot).dtype == needed, InvalidArgument, "{} must hold {}, got {}", slot, dtype_name(needed),
           dtype_name(c.in(slot).dtype));
}

void check_same_dtype(const InferContext& c, std::string_view a, std::string_view b) {
  AB_CHECK(c.in(a).dtype == c.in(b).dtype, InvalidArgument, "{} and {} must hold one dtype, got {} and {}", a, b,
           dtype_name(c.in(a).dtype), dtype_name(c.in(b).dtype));
}

void check_same(const InferContext& c, std::string_view a, std::string_view b) {
  check_same_shape(c, a, b);
  check_same_dtype(c, a, b);
}

void check_shape(const InferContext& c, std::string_view slot, const Shape& needed) {
  AB_CHECK(compatible(c.in(slot).shape, needed), ShapeMismatch, "{} must be {}, got {}", slot, needed.str(),
           c.in(slot).shape.str());
}

void check_numel(const InferContext& c, std::string_view slot, int64_t needed) {
  const int64_t have = c.in(slot).shape.numel();
  AB_CHECK(have < 0 || needed < 0 || have == needed, ShapeMismatch, "{} must have {}, got {}", slot,
           counted(needed, "element"), c.in(slot).shape.str());
}

bool is_number_per_row(const Shape& shape, int64_t rows) {
  const int64_t first = shape.rank() ? shape[0] : 1, numbers = shape.numel();
  return (first < 0 || rows < 0 || first == rows) && (numbers < 0 || numbers == first);
}

void check_number_per_row(const InferContext& c, std::string_view slot, int64_t rows) {
  const Shape& have = c.in(slot).shape;
  AB_CHECK(is_number_per_row(have, rows), ShapeMismatch, "{} must have {} of one element, got {}", slot,
           rows < 0 ? "rows" : counted(rows, "row"), have.str());
}

void check_ids_dtype(const InferContext& c, std::string_view slot) {
  const DType dtype = c.in(slot).dtype;
  AB_CHECK(dtype == DType::kInt32 || dtype == DType::kInt64, InvalidArgument, "{} must hold int32 or int64, got {}",
           slot, dtype_name(dtype));
}

void share_fitting_lod(InferContext& c, std::string_view out, std::string_view in, int i) {
  const LoDRef& lod = c.in(in).lod;
  const Shape& shape = c.out(out, i).shape;
  if (!lod || lod->empty() || (shape.rank() > 0 && lod->back().back() == shape[0])) c.share_lod(out, in, i);
}

void grad_as(InferContext& c, std::string_view grad_slot, std::string_view slot, std::string_view lod_of) {
  if (!c.has_out(grad_slot)) return;
  c.same_shape(grad_slot, slot);
  if (!lod_of.empty()) share_fitting_lod(c, grad_slot, lod_of);
}

}  // namespace anabranch
