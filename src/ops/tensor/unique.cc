// Values without their repetitions, in the order in which each was met first.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "ops/declare/declare.h"

namespace anabranch::tensor {
namespace {

DType index_dtype(const ir::Op& op) { return dtype_from_number(op.attr<int32_t>("dtype")); }

// Which places hold a value that was met before. Memory is kept from step to step.
class Repetitions {
 public:
  // By sorting the places by their values; a NaN is equal to nothing.
  template <class T> void find(const T* x, int64_t n) {
    order_.resize(static_cast<size_t>(n));
    number_.resize(static_cast<size_t>(n));
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::sort(order_.begin(), order_.end(), [x](int64_t a, int64_t b) {
      const bool last_a = x[a] != x[a], last_b = x[b] != x[b];
      if (last_a || last_b) return last_a == last_b ? a < b : last_b;
      return x[a] < x[b] || (x[a] == x[b] && a < b);
    });
    int64_t* first = order_.data();  // of the values equal to the present one
    for (int64_t& place : order_) {
      if (!(x[place] == x[*first])) first = &place;
      number_[static_cast<size_t>(place)] = *first;
    }
    values_ = 0;
    for (int64_t i = 0; i < n; ++i) {  // places of first values become numbers of values
      int64_t& at = number_[static_cast<size_t>(i)];
      if (at == i) {
        order_[static_cast<size_t>(values_)] = i;
        at = values_++;
      } else {
        at = number_[static_cast<size_t>(at)];
      }
    }
  }
  int64_t values() const { return values_; }
  int64_t first_place(int64_t value) const { return order_[static_cast<size_t>(value)]; }
  int64_t number_at(int64_t place) const { return number_[static_cast<size_t>(place)]; }

 private:
  std::vector<int64_t> order_, number_;
  int64_t values_ = 0;
};

void infer_unique(InferContext& c, bool counts) {
  check_tensor(c, "X");
  check_rank(c, "X", 1, 1);
  const DType index = index_dtype(c.op());
  const Shape found = c.runtime() ? Shape() : Shape{kUnknown};
  c.set_out("Out", found, c.in("X").dtype);
  c.set_out("Index", c.in("X").shape, index);
  if (counts) c.set_out("Count", found, index);
}

// I: element type of the indices.
template <class T, class I> Kernel unique_kernel(const KernelArgs& op, Out count) {
  return [x = op.in("X"), out = op.out("Out"), index = op.out("Index"), count,
          found = std::make_shared<Repetitions>()](KernelContext& c) {
    const T* from = c[x].data<T>();
    const int64_t n = c[x].numel();
    found->find(from, n);
    if (c.wants(out)) {
      c[out].resize(Shape{found->values()}, dtype_of<T>);
      T* to = c[out].template mutable_data<T>();
      for (int64_t k = 0; k < found->values(); ++k) to[k] = from[found->first_place(k)];
    }
    if (c.wants(index)) {
      I* to = c[index].template mutable_data<I>();
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<I>(found->number_at(i));
    }
    if (c.wants(count)) {
      c[count].resize(Shape{found->values()}, dtype_of<I>);
      I* to = c[count].template mutable_data<I>();
      std::fill(to, to + found->values(), I{0});
      for (int64_t i = 0; i < n; ++i) to[found->number_at(i)] += 1;
    }
  };
}

void declare_unique(const char* type, const char* doc, bool counts) {
  OpDef& def = declare_op(type, __FILE__).doc(doc);
  def.in("X", "[N] numbers").out("Out", "[M] as X: the values").out("Index", "[N]: where in Out each element of X is");
  if (counts) def.out("Count", "[M]: how often each value occurs");
  def.required_attr("dtype", AttrType::kInt, "number of the element type of Index: int32 or int64");
  def.effects(kDynamic).no_grad(kNotDifferentiable).infer([counts](InferContext& c) { infer_unique(c, counts); });
  def.cpu<float, double, int32_t, int64_t>([counts](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const Out count = counts ? op.out("Count") : Out{};
    const DType index = index_dtype(op.op());
    AB_CHECK(index == DType::kInt32 || index == DType::kInt64, Unsupported, "dtype must be int32 or int64, got {}",
             dtype_name(index));
    return index == DType::kInt32 ? unique_kernel<T, int32_t>(op, count) : unique_kernel<T, int64_t>(op, count);
  });
}

void declare_both() {
  declare_unique("unique", "Out = the values of X, each once, in the order in which they come first.", false);
  declare_unique(
      "unique_with_counts",
      "Out = the values of X, each once, in the order in which they come first; Count = how often each occurs.", true);
}

AB_OPS(declare_both);

}  // namespace
}  // namespace anabranch::tensor
