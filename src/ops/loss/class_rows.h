// Losses over a few rows of a class table per sample: scores x_i . w_c + b_c and their gradients.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "core/row_locks.h"
#include "core/selected_rows.h"
#include "ops/declare/declare.h"
#include "ops/kernels/simd.h"

namespace anabranch::loss {

template <class T> struct ClassTable {
  const T *rows, *bias;  // bias may be null
  int64_t width;
  bool shared = RowLocks::shared();  // locks rows while they are read
  T score(const T* x, int64_t row) const {
    const RowLocks::Hold hold(rows, row, shared);
    T sum = bias ? bias[row] : T{0};
    if constexpr (std::is_same_v<T, float>) return sum + simd::dot(x, rows + row * width, width);
    for (int64_t k = 0; k < width; ++k) sum += x[k] * rows[row * width + k];
    return sum;
  }
};

// Propagates gradients of scores to samples, table and bias, in the order in which they are added. Any of the three may
// be null. A sparse gradient of the table has one row per score.
template <class T> class ScoreGradients {
 public:
  ScoreGradients(const ClassTable<T>& table, int64_t height) : table_(table), height_(height) {}

  void set_dx(Tensor* dx) { dx_ = zeroed(dx); }
  void set_dbias(Tensor* db) { db_ = zeroed(db); }
  void set_dtable(Value* dw, bool sparse, int64_t scores) {
    if (!sparse) {
      dw_ = zeroed(&dw->as<Tensor>());
      return;
    }
    sparse_ = &dw->as<SelectedRows>();
    sparse_->height = height_;
    sparse_->rows.clear();
    sparse_->rows.reserve(static_cast<size_t>(scores));
    sparse_->value.resize(Shape{scores, table_.width}, dtype_of<T>);
  }

  // The score of sample i (its numbers x) and `row` has the gradient g.
  void add(int64_t i, const T* x, int64_t row, T g) {
    const int64_t width = table_.width;
    const T* w = table_.rows + row * width;
    if (dx_) {
      const RowLocks::Hold hold(table_.rows, row, table_.shared);
      accumulate(w, g, dx_ + i * width);
    }
    if (dw_) accumulate(x, g, dw_ + row * width);
    if (db_) db_[row] += g;
    if (!sparse_) return;
    T* to = sparse_->value.mutable_data<T>() + static_cast<int64_t>(sparse_->rows.size()) * width;
    for (int64_t k = 0; k < width; ++k) to[k] = g * x[k];
    sparse_->rows.push_back(row);
  }

 private:
  static T* zeroed(Tensor* t) {
    T* to = t->template mutable_data<T>();
    std::fill(to, to + t->numel(), T{0});
    return to;
  }
  void accumulate(const T* from, T g, T* to) const {
    for (int64_t k = 0; k < table_.width; ++k) to[k] += g * from[k];
  }

  ClassTable<T> table_;
  int64_t height_;
  T *dx_ = nullptr, *dw_ = nullptr, *db_ = nullptr;
  SelectedRows* sparse_ = nullptr;
};

// x [N, D], table [C, D] and an optional bias of C numbers, of one dtype.
inline void check_class_table(const InferContext& c, const char* x, const char* table) {
  for (const char* slot : {x, table}) check_rank(c, slot, 2, 2);
  const Shape &a = c.in(x).shape, &b = c.in(table).shape;
  AB_CHECK(a[1] == b[1] || a[1] == kUnknown || b[1] == kUnknown, ShapeMismatch,
           "{} and {} must have rows of one width, got {} and {}", x, table, a.str(), b.str());
  check_same_dtype(c, table, x);
  if (!c.has_in("Bias")) return;
  check_numel(c, "Bias", b[0]);
  check_same_dtype(c, "Bias", x);
}

inline void check_equal_rows(const InferContext& c, const char* slot, const char* other) {
  const Shape &a = c.in(slot).shape, &b = c.in(other).shape;
  AB_CHECK(a[0] == b[0] || a[0] == kUnknown || b[0] == kUnknown, ShapeMismatch,
           "{} and {} must have the same number of rows, got {} and {}", slot, other, a.str(), b.str());
}

// For a gradient op with the attributes of a table: gradients of tables are sparse rows if is_sparse is set.
inline void infer_table_gradients(InferContext& c, std::initializer_list<const char*> gradients) {
  infer_gradient(c);
  for (const char* slot : gradients) {
    if (c.attr<bool>("is_sparse") && c.has_out(slot)) c.out(slot).kind = VarKind::kSelectedRows;
  }
}

// For tables that Fluid may keep on parameter servers.
inline void table_attrs(OpDef& def) {
  def.attr<bool>("is_sparse", false, "the gradient of the table holds only the touched rows")
      .ignores("remote_prefetch", false)
      .ignores("trainer_id", int32_t{0})
      .ignores("height_sections", std::vector<int64_t>{})
      .ignores("epmap", std::vector<std::string>{})
      .ignores("table_names", std::vector<std::string>{});
}

}  // namespace anabranch::loss
