#include "ops/sparse/grad_sources.h"

#include <cmath>

#include "base/flags.h"
#include "ops/declare/checks.h"
#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sparse {
namespace {

constexpr int64_t kNoPadding = -1;

// Rows of the gradient tensor of a source.
int64_t rows_of(int64_t ids, int64_t per_row, Pool pool, const LoD* lod) {
  if (pool != Pool::kNone) return lod && !lod->empty() ? static_cast<int64_t>(lod->back().size()) - 1 : kUnknown;
  return ids < 0 ? kUnknown : ids / per_row;
}

void check_list(const InferContext& c, const char* attr, size_t have) {
  AB_CHECK(have == static_cast<size_t>(c.n_in("Ids")), InvalidArgument,
           "{} must have one entry for each of the {} Ids, got {}", attr, c.n_in("Ids"), have);
}

// Accepts the shapes that the separate ops would accept. A pooled gradient, or one that is columns of a wider one, must
// have the exact shape; for a gradient that only a lookup reads, the number of elements suffices.
void check_whole_grad(const Shape& grad, int i, const Shape& whole, bool exact) {
  const bool fits = exact ? grad == whole : grad.numel() == whole.numel();
  AB_CHECK(fits, ShapeMismatch, "Grad[{}] must be {}, got {}", i, whole.str(), grad.str());
}

void check_factor(const InferContext& c, int i, int32_t factor, const char* table, int32_t pool) {
  AB_CHECK(factor < c.n_in("Factor") && pool == 0, InvalidArgument,
           "lookup {} must have one of the {} Factor and no pool, got {} and {}", i, c.n_in("Factor"), factor, pool);
  const Meta &by = c.in("Factor", factor), &ids = c.in("Ids", i);
  AB_CHECK(by.kind == VarKind::kLoDTensor && by.dtype == c.in(table).dtype, InvalidArgument,
           "Factor[{}] must be a tensor of the table's dtype, got a {} of {}", factor, var_kind_name(by.kind),
           dtype_name(by.dtype));
  AB_CHECK(!c.runtime() || by.shape.numel() == ids.shape.numel(), ShapeMismatch,
           "Factor[{}] must have a number for each of Ids[{}] {}, got {}", factor, i, ids.shape.str(), by.shape.str());
}

}  // namespace

void declare_sources(OpDef& def) {
  def.in_list("Ids", "int32 or int64: the ids of each lookup; with LoD if they are pooled")
      .in_list("Grad", "for each Ids the tensor that holds the gradients of its rows")
      .in_optional_list("Factor", "one number for each of Ids: factors of the gradients of some lookups")
      .attr<std::vector<int64_t>>("padding_idx", {}, "of each lookup: id without gradient; -1: none")
      .attr<std::vector<int32_t>>("factor", {}, "of each lookup: index in Factor; -1: none; empty: none for all")
      .attr<std::vector<int32_t>>("column", {}, "of each lookup: first column of its gradients in a row of Grad")
      .attr<std::vector<int32_t>>("columns", {},
                                  "of each lookup: number of columns of Grad; 0: no others; empty: not compared")
      .attr<std::vector<int32_t>>("per_row", {}, "of each lookup: number of ids per row of Grad")
      .attr<std::vector<int32_t>>("pool", {}, "of each lookup: 0 none, or pooled by 1 sum, 2 average, 3 square root");
}

void infer_sources(const InferContext& c, const char* table) {
  const int n = c.n_in("Ids");
  AB_CHECK(n > 0 && c.n_in("Grad") == n, InvalidArgument, "Grad must have one entry for each of the {} Ids, got {}", n,
           c.n_in("Grad"));
  check_list(c, "padding_idx", c.attr<std::vector<int64_t>>("padding_idx").size());
  const auto& column = c.attr<std::vector<int32_t>>("column");
  const auto& per_row = c.attr<std::vector<int32_t>>("per_row");
  const auto& pool = c.attr<std::vector<int32_t>>("pool");
  check_list(c, "column", column.size());
  const auto& factor = c.attr<std::vector<int32_t>>("factor");
  if (!factor.empty()) check_list(c, "factor", factor.size());
  const auto& columns = c.attr<std::vector<int32_t>>("columns");
  if (!columns.empty()) check_list(c, "columns", columns.size());
  check_list(c, "per_row", per_row.size());
  check_list(c, "pool", pool.size());
  const int64_t width = c.in(table).shape[1];
  AB_CHECK(width != 0, InvalidArgument, "the rows of {} must not be empty, got {}", table, c.in(table).shape.str());
  for (int i = 0; i < n; ++i) {
    const Meta &ids = c.in("Ids", i), &grad = c.in("Grad", i);
    AB_CHECK(ids.dtype == DType::kInt64 || ids.dtype == DType::kInt32, InvalidArgument,
             "Ids[{}] must hold int32 or int64, got {}", i, dtype_name(ids.dtype));
    AB_CHECK(grad.kind == VarKind::kLoDTensor && grad.dtype == c.in(table).dtype, InvalidArgument,
             "Grad[{}] must be a tensor of the table's dtype, got a {} of {} for {} of {}", i, var_kind_name(grad.kind),
             dtype_name(grad.dtype), table, dtype_name(c.in(table).dtype));
    AB_CHECK(column[i] >= 0 && per_row[i] >= 1 && pool[i] >= 0 && pool[i] <= 3 && (pool[i] == 0 || per_row[i] == 1),
             InvalidArgument, "lookup {} must have a valid column, per_row and pool, got {}, {} and {}", i, column[i],
             per_row[i], pool[i]);
    if (!factor.empty() && factor[i] >= 0) check_factor(c, i, factor[i], table, pool[i]);
    if (!c.runtime()) continue;
    const int64_t numel = ids.shape.numel();
    const int64_t rows = rows_of(numel, per_row[i], static_cast<Pool>(pool[i]), ids.lod.get());
    const bool multiplied = !factor.empty() && factor[i] >= 0;
    const bool ends = pool[i] == 0 ? rows * per_row[i] == numel : rows >= 0 && ids.lod->back().back() == numel;
    AB_CHECK(ends, ShapeMismatch, "Ids[{}] must match per_row and pool, got {} with {} ids per row and pool {}", i,
             ids.shape.str(), per_row[i], pool[i]);
    const int64_t stride = rows ? grad.shape.numel() / rows : 0;
    AB_CHECK(stride * rows == grad.shape.numel() &&
                 (rows == 0 || column[i] + (multiplied ? 1 : per_row[i]) * width <= stride),
             ShapeMismatch, "Grad must match Ids and the table, got Ids[{}] {}, table width {}, and Grad[{}] {}", i,
             ids.shape.str(), width, i, grad.shape.str());
    if (columns.empty() || multiplied) continue;
    const bool exact = columns[i] != 0 || pool[i] != 0;
    check_whole_grad(grad.shape, i, Shape{rows, columns[i] ? columns[i] : per_row[i] * width}, exact);
  }
}

template <class T>
GradSources<T>::GradSources(const KernelArgs& op)
    : ids_in_(op.in("Ids")), grads_in_(op.in("Grad")), factors_in_(op.in("Factor")) {
  const auto& factor = op.attr<std::vector<int32_t>>("factor");
  const auto& padding = op.attr<std::vector<int64_t>>("padding_idx");
  const auto& column = op.attr<std::vector<int32_t>>("column");
  const auto& per_row = op.attr<std::vector<int32_t>>("per_row");
  const auto& pool = op.attr<std::vector<int32_t>>("pool");
  const auto& names = op.op().input("Ids");
  const auto& table = op.op().input(op.op().input("W").empty() ? "Param" : "W").at(0);
  for (size_t i = 0; i < padding.size(); ++i) {
    IdSource name{"lookup_table", names[i], table};
    const int32_t by = factor.empty() ? -1 : factor[i];
    sources_.push_back({std::move(name), padding[i], column[i], per_row[i], by, static_cast<Pool>(pool[i]), {}});
    divided_ |= pool[i] > static_cast<int32_t>(Pool::kSum);
    multiplied_ |= by >= 0;
  }
}

template <class T> void GradSources<T>::read(const KernelContext& c, int64_t height, int64_t width) {
  ids_.clear();
  grads_.clear();
  divisors_.clear();
  factors_.clear();
  for (int i = 0; i < ids_in_.count; ++i) read_source(c, i, height, width);
}

template <class T>
void GradSources<T>::add_pooled(const Source& s, const Tensor& ids, const int64_t* id, const T* grad, int64_t stride) {
  const auto& offsets = sequence::offsets(ids);
  for (size_t r = 0; r + 1 < offsets.size(); ++r) {
    const int64_t length = offsets[r + 1] - offsets[r];
    T over = 1;
    if (s.pool == Pool::kAverage) over = static_cast<T>(length);
    if (s.pool == Pool::kSqrt) over = std::sqrt(static_cast<T>(length));
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k) {
      ids_.push_back(id[k]);
      grads_.push_back(grad + static_cast<int64_t>(r) * stride);
      if (divided_) divisors_.push_back(over);
    }
  }
}

template <class T> void GradSources<T>::read_source(const KernelContext& c, int i, int64_t height, int64_t width) {
  Source& s = sources_[static_cast<size_t>(i)];
  const Tensor &ids = c.at(ids_in_, i), &grads = c.at(grads_in_, i);
  const int64_t n = ids.numel();
  const int64_t* id = as_int64(ids, &s.scratch);
  const bool skips = s.padding != kNoPadding && (!Flags::exact_fluid() || s.padding >= height);
  check_table_ids(s.name, ids, id, height, skips ? s.padding : kNoPadding);
  const int64_t rows = rows_of(n, s.per_row, s.pool, &ids.lod());
  const int64_t stride = rows ? grads.numel() / rows : 0;
  const T* grad = grads.data<T>() + s.column;
  const size_t begin = ids_.size();
  if (s.pool != Pool::kNone) {
    add_pooled(s, ids, id, grad, stride);
  } else {
    ids_.insert(ids_.end(), id, id + n);
    grads_.resize(begin + static_cast<size_t>(n));
    const T** to = grads_.data() + begin;
    const int64_t next = s.factor < 0 ? width : 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t q = 0; q < s.per_row; ++q) *to++ = grad + r * stride + q * next;
    }
    if (divided_) divisors_.resize(ids_.size(), T{1});
  }
  if (s.factor >= 0) {
    const T* by = c.at(factors_in_, s.factor).template data<T>();
    factors_.insert(factors_.end(), by, by + n);
  } else if (multiplied_) {
    factors_.resize(ids_.size(), T{1});
  }
  if (skips) remove_padding(begin, s.padding);
}

template <class T> void GradSources<T>::remove_padding(size_t begin, int64_t padding) {
  size_t kept = begin;
  for (size_t k = begin; k < ids_.size(); ++k) {
    if (ids_[k] == padding) continue;
    ids_[kept] = ids_[k];
    grads_[kept] = grads_[k];
    if (divided_) divisors_[kept] = divisors_[k];
    if (multiplied_) factors_[kept] = factors_[k];
    ++kept;
  }
  ids_.resize(kept);
  grads_.resize(kept);
  if (divided_) divisors_.resize(kept);
  if (multiplied_) factors_.resize(kept);
}

template class GradSources<float>;
template class GradSources<double>;

}  // namespace anabranch::sparse
