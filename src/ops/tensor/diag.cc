#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"

namespace anabranch::tensor::diag_op {
namespace {

AB_OP(diag)
    .doc("Out = a square matrix with Diagonal on its diagonal and zeros elsewhere.")
    .in("Diagonal", "[N] numbers")
    .out("Out", "[N, N]")
    .infer([](InferContext& c) {
      check_rank(c, "Diagonal", 1, 1);
      const int64_t n = c.in("Diagonal").shape[0];
      c.set_out("Out", Shape{n, n}, c.in("Diagonal").dtype);
    })
    .no_grad("the layer stops gradients, as in Fluid")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [diagonal = op.in("Diagonal"), out = op.out("Out")](KernelContext& c) {
        const int64_t n = c[diagonal].numel();
        const T* from = c[diagonal].data<T>();
        T* to = c[out].mutable_data<T>();
        std::fill(to, to + n * n, T{0});
        for (int64_t i = 0; i < n; ++i) to[i * n + i] = from[i];
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) -> Kernel {
      return [on = device::OnDevice(op.dtype()), diagonal = op.in("Diagonal"), out = op.out("Out")](KernelContext& c) {
        const int64_t n = c[diagonal].numel();
        NdLoop<2> loop;
        loop.add_axis(n, {n + 1, 1});
        on.zero(c, &c[out]);
        on.strided(c, loop, c[diagonal], 0, &c[out], 0);
      };
    });

}  // namespace
}  // namespace anabranch::tensor::diag_op
