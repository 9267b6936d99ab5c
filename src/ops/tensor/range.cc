// Evenly spaced numbers: range, linspace.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"

namespace anabranch::tensor::range_op {
namespace {

template <class T> int64_t range_count(T start, T end, T step) {
  AB_CHECK(step != 0, InvalidArgument, "Step must not be 0");
  if (start == end || (step > 0) != (end > start)) return 0;
  const double n = std::ceil((static_cast<double>(end) - static_cast<double>(start)) / static_cast<double>(step));
  AB_CHECK(n >= 0 && n < 1e12, InvalidArgument,
           "Start, End and Step must give less than 1e12 numbers, got {}, {} and {}", start, end, step);
  return static_cast<int64_t>(n);
}

void infer_range(InferContext& c) {
  const Tensor *start = scalar_in(c, "Start"), *end = scalar_in(c, "End"), *step = scalar_in(c, "Step");
  int64_t n = kUnknown;
  if (start && end && step) {
    visit_dtype(start->dtype(), [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_same_v<T, bool>)
        AB_THROW(Unsupported, "Start must not hold bool");
      else
        n = range_count(*start->data<T>(), *end->data<T>(), *step->data<T>());
    });
  }
  c.set_out("Out", Shape{n}, c.in("Start").dtype);
}

AB_OP(range)
    .doc("Out = Start, Start + Step, ..., below End (above it if Step is negative).")
    .in("Start", "[1] numbers")
    .in("End", "[1] like Start")
    .in("Step", "[1] like Start, not 0")
    .out("Out", "[n] like Start")
    .effects(kDynamic)
    .infer(infer_range)
    .no_grad(kNotDifferentiable)
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [start = op.in("Start"), step = op.in("Step"), out = op.out("Out")](KernelContext& c) {
        const T from = *c[start].data<T>(), by = *c[step].data<T>();
        T* to = c[out].mutable_data<T>();
        for (int64_t i = 0; i < c[out].numel(); ++i) to[i] = static_cast<T>(from + static_cast<T>(i) * by);
      };
    });

AB_OP(linspace)
    .doc("Out = Num numbers from Start to Stop, both included, evenly spaced.")
    .in("Start", "[1] float")
    .in("Stop", "[1] like Start")
    .in("Num", "[1] int32, >= 1")
    .out("Out", "[Num] like Start")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      scalar_in(c, "Start"), scalar_in(c, "Stop");
      const Tensor* num = scalar_in(c, "Num");
      const int64_t n = num ? integers_of(*num, "Num")[0] : kUnknown;
      AB_CHECK(n >= 1 || !num, InvalidArgument, "Num must be at least 1, got {}", n);
      c.set_out("Out", Shape{n}, c.in("Start").dtype);
    })
    .no_grad(kNotDifferentiable)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [start = op.in("Start"), stop = op.in("Stop"), out = op.out("Out")](KernelContext& c) {
        const T from = *c[start].data<T>(), to = *c[stop].data<T>();
        const int64_t n = c[out].numel();
        const T step = n > 1 ? (to - from) / static_cast<T>(n - 1) : T(0);
        T* at = c[out].mutable_data<T>();
        for (int64_t i = 0; i < n; ++i) at[i] = from + step * static_cast<T>(i);
      };
    });

}  // namespace
}  // namespace anabranch::tensor::range_op
