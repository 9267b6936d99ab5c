// Out = the mean of all elements.
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch_fold.h"
#include "ops/kernels/reduce.h"

namespace anabranch::reduce::mean_op {
namespace {

AB_OP(mean)
    .doc("Mean of all elements of X; NaN if X is empty.")
    .in("X", "[...] float")
    .out("Out", "[1], dtype of X")
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), c.in("X").dtype); })
    .traits(kMean)
    .grad_reads({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        const double total = parallel_total<double>(c, c[x].numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
          return static_cast<double>(fold_run<FoldSum<T>>(from + begin, end - begin));
        });
        *c[out].mutable_data<T>() = static_cast<T>(total / static_cast<double>(c[x].numel()));
      };
    })
    .device<float, double, float16, bfloat16>(device::fold_all("mean"));

AB_GRAD(mean)
    .doc("X@GRAD = Out@GRAD / number of elements, everywhere.")
    .grad_lod("X@GRAD", "X")
    .grad(second_order::linear)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const int64_t n = c[dx].numel();
        const T share = *c[dout].data<T>() / static_cast<T>(n);
        T* to = c[dx].mutable_data<T>();
        c.parallel_for(n, kCheapGrain, [=](int64_t begin, int64_t end) { std::fill(to + begin, to + end, share); });
      };
    })
    .device<float, double, float16, bfloat16>(device::fold_all_grad("mean", false));

}  // namespace
}  // namespace anabranch::reduce::mean_op
