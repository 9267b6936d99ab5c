// Tests whether two tensors are equal up to a tolerance.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/wide.h"

namespace anabranch::math::allclose_op {
namespace {

AB_OP(allclose)
    .doc("Out = whether |Input - Other| <= atol + rtol |Other| for all elements.")
    .in("Input", "[...] float")
    .in("Other", "[...] like Input")
    .out("Out", "[1] bool")
    .attr<float>("rtol", 1e-5f, "tolerance relative to Other")
    .attr<float>("atol", 1e-8f, "absolute tolerance")
    .attr<bool>("equal_nan", false, "treats NaNs as equal")
    .infer([](InferContext& c) {
      check_same(c, "Input", "Other");
      c.set_out("Out", scalar_shape(), DType::kBool);
    })
    .no_grad(kNotDifferentiable)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [rtol = static_cast<T>(op.attr<float>("rtol")), atol = static_cast<T>(op.attr<float>("atol")),
              nans = op.attr<bool>("equal_nan"), x = op.in("Input"), y = op.in("Other"),
              out = op.out("Out")](KernelContext& c) {
        const T *a = c[x].data<T>(), *b = c[y].data<T>();
        const auto far = parallel_total<int64_t>(c, c[x].numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
          int32_t count = 0;
          in_wide_vectors([=, &count] {
            for (int64_t i = begin; i < end; ++i) {
              count += std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i]) ? 0 : 1;
            }
          });
          for (int64_t i = begin; nans && i < end; ++i) count -= std::isnan(a[i]) && std::isnan(b[i]);
          return static_cast<int64_t>(count);
        });
        *c[out].mutable_data<bool>() = far == 0;
      };
    });

}  // namespace
}  // namespace anabranch::math::allclose_op
