// Losses over a few rows of a class table for each sample: scores x_i . w_c + b_c and their gradients.
#pragma once
#include <algorithm>

#include "core/row_locks.h"
#include "core/selected_rows.h"
#include "opdef/op_def.h"
#include "ops/declare/checks.h"

namespace anabranch::loss {

template <class T> struct ClassTable {
  const T *rows, *bias;  // bias may be null
  int64_t width;
  bool shared = RowLocks::shared();  // rows are held while they are read
  T score(const T* x, int64_t row) const {
    const RowLocks::Hold hold(rows, row, shared);
    T sum = bias ? bias[row] : T{0};
    for (int64_t k = 0; k < width; ++k) sum += x[k] * rows[row * width + k];
    return sum;
  }
};

// Gradients of scores, spread to samples, table and bias in the order in which they are added. Any of the three may be
// unwanted. A sparse gradient of the table has one row for each score.
template <class T> class ScoreGradients {
 public:
  ScoreGradients(const ClassTable<T>& table, int64_t height) : table_(table), height_(height) {}

  void want_samples(Tensor* dx) { dx_ = zeroed(dx); }
  void want_bias(Tensor* db) { db_ = zeroed(db); }
  void want_table(Value* dw, bool sparse, int64_t scores) {
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
    T* to = sparse_->value.template mutable_data<T>() + static_cast<int64_t>(sparse_->rows.size()) * width;
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
  for (const char* slot : {x, table}) {
    check_tensor(c, slot);
    check_rank(c, slot, 2, 2);
  }
  const Shape &a = c.in(x).shape, &b = c.in(table).shape;
  AB_CHECK(a[1] == b[1] || a[1] == kUnknown || b[1] == kUnknown, ShapeMismatch,
           "{}: {} is {}, {} is {}; their rows must be as wide", op_name(c), x, a.str(), table, b.str());
  check_same_dtype(c, table, x);
  if (!c.has_in("Bias")) return;
  check_tensor(c, "Bias");
  check_numel(c, "Bias", b[0]);
  check_same_dtype(c, "Bias", x);
}

// The gradient of an input that may be missing; then it cannot be wanted.
inline void grad_as_given(InferContext& c, const char* grad, const char* slot) {
  AB_CHECK(c.has_in(slot) || !c.has_out(grad), InvalidArgument, "{}: {} must be given where {} is wanted", op_name(c),
           slot, grad);
  if (c.has_in(slot)) grad_as(c, grad, slot);
}

inline void check_integers(const InferContext& c, const char* slot) {
  check_tensor(c, slot);
  const DType dtype = c.in(slot).dtype;
  AB_CHECK(dtype == DType::kInt64 || dtype == DType::kInt32, InvalidArgument, "{}: {} holds {}, expected int64",
           op_name(c), slot, dtype_name(dtype));
}

// Attributes of tables that Fluid keeps on parameter servers.
inline OpDef& table_attrs(OpDef& def) {
  return def.attr<bool>("is_sparse", false, "the gradient of the table holds the touched rows only")
      .attr<bool>("remote_prefetch", false, "rows are fetched from parameter servers")
      .attr<int32_t>("trainer_id", 0, "of the fetching trainer")
      .attr<std::vector<int64_t>>("height_sections", {}, "rows of the table on each server")
      .attr<std::vector<std::string>>("epmap", {}, "addresses of the servers")
      .attr<std::vector<std::string>>("table_names", {}, "names of the pieces of the table");
}

}  // namespace anabranch::loss
