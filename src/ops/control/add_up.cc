#include "ops/control/add_up.h"

#include <algorithm>

#include "ops/kernels/add_rows.h"
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

void add_rows_after(const SelectedRows& from, SelectedRows& to) {
  const Tensor kept = to.value;  // keeps the old memory alive while rows move
  AB_CHECK(from.value.dtype() == kept.dtype() && from.value.row_elems() == kept.row_elems(), ShapeMismatch,
           "sparse gradients of one variable must have the same row shape and dtype, got rows {} and {}",
           kept.shape().str(), from.value.shape().str());
  Shape shape = kept.shape();
  shape.set(0, static_cast<int64_t>(to.rows.size() + from.rows.size()));
  to.value.resize(shape, kept.dtype());
  if (to.value.raw() != kept.raw()) {
    Shape room = shape;  // doubles the capacity, so a row moves only a few times, however many parts there are
    room.set(0, 2 * shape[0]);
    to.value.resize(room, kept.dtype());
    to.value.resize(shape, kept.dtype());
    std::copy_n(static_cast<const char*>(kept.raw()), kept.bytes(), static_cast<char*>(to.value.mutable_raw()));
  }
  std::copy_n(static_cast<const char*>(from.value.raw()), from.value.bytes(),
              static_cast<char*>(to.value.mutable_raw()) + kept.bytes());
  to.rows.insert(to.rows.end(), from.rows.begin(), from.rows.end());
}

}  // namespace

void begin_sum(Value& sum) {
  if (auto* tensor = sum.get<Tensor>(); tensor && tensor->initialized()) {
    tensor->resize(Shape{0}, tensor->dtype());
    tensor->set_lod(LoDRef());
  } else {
    sum.clear();
  }
}

bool has_parts(const Value& sum) {
  const auto* tensor = sum.get<Tensor>();
  return sum.initialized() && !(tensor && tensor->shape() == Shape{0});
}

void add_part(const KernelContext& c, const Value& part, Value& sum) {
  if (!has_parts(sum)) return sum.copy_from(part);
  if (const auto* array = part.get<TensorArray>()) return add_elements(c, *array, sum.as<TensorArray>());
  auto* rows = sum.get<SelectedRows>();
  const auto* more = part.get<SelectedRows>();
  SelectedRows merged;
  if (rows && more) {
    add_rows_after(*more, *rows);
  } else if (more) {
    add_rows(*more, &merged, &sum.as<Tensor>());
  } else if (rows) {
    Tensor whole;
    whole.copy_from(part.tensor());
    add_rows(*rows, &merged, &whole);
    sum.as<Tensor>() = std::move(whole);
  } else {
    add_tensor(c, part.tensor(), sum.as<Tensor>());
  }
}

void sum_slot(OpDef& def) {
  def.in_optional_list(kSumSlot, "sums of the gradients of variables that the block only reads")
      .takes(kSumSlot, Holds::kAnything);
}

int sum_before(const ir::Op& op, const std::string& of) {
  if (!op.has_attr(kSumsOf)) return -1;
  const auto& names = op.attr<std::vector<std::string>>(kSumsOf);
  const auto at = std::find(names.begin(), names.end(), of);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

bool sums_inside(const ir::Op& op, const std::string& of) {
  if (!op.has_attr(kSumsInside)) return false;
  const auto& names = op.attr<std::vector<std::string>>(kSumsInside);
  return std::find(names.begin(), names.end(), of) != names.end();
}

void begin_inside(const Value* before, bool array, Value* to, Value& sum) {
  if (array && before && before == to) {
    sum.as<TensorArray>().swap(to->as<TensorArray>());
  } else if (before) {
    sum.copy_from(*before);
  } else if (array) {
    sum.as<TensorArray>().clear();
  } else {
    begin_sum(sum);
  }
}

bool give_inside(Value& sum, Value& to) {
  if (!has_parts(sum)) return false;
  if (auto* array = sum.get<TensorArray>()) {
    to.as<TensorArray>().swap(*array);
  } else {
    to.copy_from(sum);
  }
  return true;
}

void SumOverIterations::begin(const Value* before, Value& sum) {
  parts_ = 0;
  if (!before || !has_parts(*before)) return;
  if (const auto* rows = before->get<SelectedRows>()) {
    if (rows_.empty()) rows_.emplace_back();
    copy_rows(*rows, rows_[0]);
    sum.as<SelectedRows>();
  } else if (before != &sum) {
    sum.copy_from(*before);
  }
  parts_ = 1;
}

void SumOverIterations::add(const KernelContext& c, Value& part, Value& sum) {
  const auto* tensor = sum.get<Tensor>();
  const auto* rows = part.get<SelectedRows>();
  if (rows && (parts_ == 0 || !(tensor && tensor->initialized()))) {
    if (rows_.size() <= parts_) rows_.emplace_back();
    copy_rows(*rows, rows_[parts_++]);
    sum.as<SelectedRows>();
  } else if (const auto* array = part.get<TensorArray>()) {
    if (parts_++ == 0) sum.as<TensorArray>().clear();
    add_elements(c, *array, sum.as<TensorArray>());
  } else if (parts_ == 0 || !sum.is<SelectedRows>()) {
    parts_++ == 0 ? sum.copy_from(part) : add_part(c, part, sum);
  } else {
    SelectedRows merged;
    auto& whole = part.as<Tensor>();
    for (size_t i = 0; i < parts_; ++i) add_rows(rows_[i], &merged, &whole);
    sum.copy_from(part);
  }
}

bool SumOverIterations::finish(Value& sum) {
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
             ShapeMismatch, "sparse gradients of one variable must be alike in all iterations, got {} and {}",
             out->value.shape().str(), part.value.shape().str());
    out->rows.insert(out->rows.end(), part.rows.begin(), part.rows.end());
    const auto* from = static_cast<const char*>(part.value.raw());
    to = std::copy_n(from, part.value.bytes(), to);
  }
  return true;
}

}  // namespace anabranch::control
