// Out = the sum of the absolute values of all elements.
#include "ops/declare/declare.h"
#include "ops/device/launch_fold.h"
#include "ops/kernels/reduce.h"
#include "ops/reduce/fold_functions.h"

namespace anabranch::reduce::l1_norm_op {
namespace {

AB_OP(l1_norm)
    .doc("Out = the sum of the absolute values of all elements of X.")
    .in("X", "[...] float")
    .out("Out", "[1] like X")
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), c.in("X").dtype); })
    .grad_reads({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        *c[out].mutable_data<T>() =
            static_cast<T>(parallel_total<double>(c, c[x].numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
              return static_cast<double>(fold_run<FoldSizes<T>>(from + begin, end - begin));
            }));
      };
    })
    .device<float, double, float16, bfloat16>(device::fold_all("sizes"));

AB_GRAD(l1_norm)
    .doc("X@GRAD = Out@GRAD with the sign of X; 0 where X is 0.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const T *from = c[x].data<T>(), share = *c[dout].data<T>();
        map(c, kCheapGrain, c[x].numel(), from, c[dx].mutable_data<T>(),
            [=](T v) { return SizesTerm::of(v, share, share, share); });
      };
    })
    .device<float, double, float16, bfloat16>(device::fold_all_grad("sizes", true));

}  // namespace
}  // namespace anabranch::reduce::l1_norm_op
