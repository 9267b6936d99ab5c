// Distinct values, in order of first occurrence.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "ops/declare/declare.h"

namespace anabranch::tensor::unique_op {
namespace {

DType index_dtype(const ir::Op& op) { return dtype_from_number(op.attr<int32_t>("dtype")); }

// Detects repeated values. Memory is kept from step to step.
class Repetitions {
 public:
  // By a hash table of the values so far, keyed by their bits; a NaN is equal to nothing.
  template <class T> void find(const T* x, int64_t n) {
    size_t slots = 16;
    while (slots < 2 * static_cast<size_t>(n)) slots *= 2;
    table_.assign(slots, kFree);
    number_.resize(static_cast<size_t>(n));
    first_.clear();
    for (int64_t i = 0; i < n; ++i) {
      size_t at = bits_of(x[i]) & (slots - 1);
      while (table_[at] != kFree && !(x[first_[static_cast<size_t>(table_[at])]] == x[i])) at = (at + 1) & (slots - 1);
      if (table_[at] == kFree) {
        if (x[i] == x[i]) table_[at] = static_cast<int64_t>(first_.size());  // a NaN is never found again
        number_[static_cast<size_t>(i)] = static_cast<int64_t>(first_.size());
        first_.push_back(i);
      } else {
        number_[static_cast<size_t>(i)] = table_[at];
      }
    }
  }
  int64_t values() const { return static_cast<int64_t>(first_.size()); }
  int64_t first_place(int64_t value) const { return first_[static_cast<size_t>(value)]; }
  int64_t number_at(int64_t place) const { return number_[static_cast<size_t>(place)]; }

 private:
  static constexpr int64_t kFree = -1;

  // The same by equality: 0 and -0 are equal.
  template <class T> static uint64_t bits_of(T x) {
    uint64_t bits = 0;
    if (x == 0) x = 0;
    std::memcpy(&bits, &x, sizeof x);
    bits *= 0x9e3779b97f4a7c15u;
    return bits ^ (bits >> 32);
  }

  std::vector<int64_t> table_, number_, first_;  // of values: numbers by hash; by position; first positions by number
};

void infer_unique(InferContext& c, bool counts) {
  check_rank(c, "X", 1, 1);
  const DType index = index_dtype(c.op());
  const Shape found = c.runtime() ? Shape() : Shape{kUnknown};
  c.set_out("Out", found, c.in("X").dtype);
  c.set_out("Index", c.in("X").shape, index);
  if (counts) c.set_out("Count", found, index);
}

// I: dtype of the indices.
template <class T, class I> Kernel unique_kernel(const KernelArgs& op, Out count) {
  return [x = op.in("X"), out = op.out("Out"), index = op.out("Index"), count,
          found = std::make_shared<Repetitions>()](KernelContext& c) {
    const T* from = c[x].data<T>();
    const int64_t n = c[x].numel();
    found->find(from, n);
    if (c.needs(out)) {
      c[out].resize(Shape{found->values()}, dtype_of<T>);
      T* to = c[out].mutable_data<T>();
      for (int64_t k = 0; k < found->values(); ++k) to[k] = from[found->first_place(k)];
    }
    if (c.needs(index)) {
      I* to = c[index].mutable_data<I>();
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<I>(found->number_at(i));
    }
    if (c.needs(count)) {
      c[count].resize(Shape{found->values()}, dtype_of<I>);
      I* to = c[count].mutable_data<I>();
      std::fill(to, to + found->values(), I{0});
      for (int64_t i = 0; i < n; ++i) to[found->number_at(i)] += 1;
    }
  };
}

void declare_unique(const char* type, const char* doc, bool counts) {
  OpDef& def = declare_op(type, __FILE__).doc(doc);
  def.in("X", "[N] numbers")
      .out("Out", "[M] like X: the values")
      .out("Index", "[N]: index in Out of each element of X");
  if (counts) def.out("Count", "[M]: number of occurrences of each value");
  def.required_attr("dtype", AttrType::kInt, "id of the dtype of Index: int32 or int64");
  def.effects(kDynamic).no_grad(kNotDifferentiable).infer([counts](InferContext& c) { infer_unique(c, counts); });
  def.cpu<float, double, int32_t, int64_t>([counts]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    const Out count = counts ? op.out("Count") : Out{};
    const DType index = index_dtype(op.op());
    AB_CHECK(index == DType::kInt32 || index == DType::kInt64, Unsupported, "dtype must be int32 or int64, got {}",
             dtype_name(index));
    return index == DType::kInt32 ? unique_kernel<T, int32_t>(op, count) : unique_kernel<T, int64_t>(op, count);
  });
}

void declare_both() {
  declare_unique("unique", "Out = the distinct values of X, in order of first occurrence.", false);
  declare_unique("unique_with_counts",
                 "Out = the distinct values of X, in order of first occurrence; Count = their numbers of occurrences.",
                 true);
}

AB_OPS(declare_both);

}  // namespace
}  // namespace anabranch::tensor::unique_op
