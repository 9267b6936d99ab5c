#include "ops/control/add_up.h"

#include <algorithm>

#include "ops/kernels/add_tensor.h"

namespace anabranch::control {
namespace {

void copy_rows(const SelectedRows& from, SelectedRows& to) {
  to.rows = from.rows;
  to.height = from.height;
  to.value.copy_from(from.value);
}

void add_elements(const KernelContext& c, const TensorArray& from, TensorArray& to) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i].initialized()) continue;
    if (to[i].initialized()) {
      add_tensor(c, from[i], to[i]);
    } else {
      to[i].copy_from(from[i]);
    }
  }
}

}  // namespace

void SumOverTurns::add(const KernelContext& c, Value& part, Value& sum) {
  if (const auto* rows = part.get<SelectedRows>()) {
    AB_CHECK(parts_ == 0 || sum.empty() || sum.is<SelectedRows>(), Unsupported,
             "a gradient is sparse in one turn and dense in another");
    if (rows_.size() <= parts_) rows_.emplace_back();
    copy_rows(*rows, rows_[parts_++]);
    sum.as<SelectedRows>();
  } else if (const auto* array = part.get<TensorArray>()) {
    if (parts_++ == 0) sum.as<TensorArray>().clear();
    add_elements(c, *array, sum.as<TensorArray>());
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
