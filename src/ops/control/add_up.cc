#include "ops/control/add_up.h"

#include <algorithm>

#include "ops/kernels/flat_loop.h"

namespace anabranch::control {
namespace {

void copy_rows(const SelectedRows& from, SelectedRows& to) {
  to.rows = from.rows;
  to.height = from.height;
  to.value.copy_from(from.value);
}

}  // namespace

void add_tensor(const KernelContext& c, const Tensor& from, Tensor& to) {
  AB_CHECK(from.shape() == to.shape() && from.dtype() == to.dtype(), ShapeMismatch,
           "gradients of one variable are {} {} in one turn and {} {} in another", dtype_name(to.dtype()),
           to.shape().str(), dtype_name(from.dtype()), from.shape().str());
  const auto add = [&]<class T>(TypeTag<T>) {
    const T* x = from.data<T>();
    T* y = to.mutable_data<T>();
    c.parallel_for(to.numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] += x[i];
    });
  };
  if (to.dtype() == DType::kFloat64) return add(TypeTag<double>{});
  add(TypeTag<float>{});
}

void SumOverTurns::add(const KernelContext& c, Value& part, Value& sum) {
  if (const auto* rows = part.get<SelectedRows>()) {
    AB_CHECK(parts_ == 0 || sum.empty() || sum.is<SelectedRows>(), Unsupported,
             "a gradient is sparse in one turn and dense in another");
    if (rows_.size() <= parts_) rows_.emplace_back();
    copy_rows(*rows, rows_[parts_++]);
    sum.as<SelectedRows>();
  } else if (parts_++ == 0) {
    sum.copy_from(part);
  } else {
    add_tensor(c, part.tensor(), sum.as<Tensor>());
  }
}

bool SumOverTurns::finish(Value& sum) {
  if (parts_ == 0) return false;
  auto* out = sum.get<SelectedRows>();
  if (!out) return true;
  int64_t total = 0;
  for (size_t i = 0; i < parts_; ++i) total += static_cast<int64_t>(rows_[i].rows.size());
  Shape shape = rows_[0].value.shape();
  shape.set(0, total);
  out->height = rows_[0].height;
  out->rows.clear();
  out->value.resize(shape, rows_[0].value.dtype());
  auto* to = static_cast<char*>(out->value.mutable_raw());
  for (size_t i = 0; i < parts_; ++i) {
    const SelectedRows& part = rows_[i];
    AB_CHECK(part.value.dtype() == out->value.dtype() && part.value.row_elems() == out->value.row_elems(),
             ShapeMismatch, "sparse gradients of one variable are {} in one turn and {} in another",
             out->value.shape().str(), part.value.shape().str());
    out->rows.insert(out->rows.end(), part.rows.begin(), part.rows.end());
    const auto* from = static_cast<const char*>(part.value.raw());
    to = std::copy_n(from, part.value.bytes(), to);
  }
  return true;
}

}  // namespace anabranch::control
