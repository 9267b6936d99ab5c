// Smooths the labels of classes.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch_math.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::loss::label_smooth_op {
namespace {

void infer_smooth(InferContext& c) {
  const float epsilon = c.attr<float>("epsilon");
  AB_CHECK(epsilon >= 0 && epsilon <= 1, InvalidArgument, "epsilon must be from 0 to 1, got {}", epsilon);
  const Shape& x = c.in("X").shape;
  AB_CHECK(x.rank() > 0, ShapeMismatch, "X must have at least one axis, got {}", x.str());
  if (c.has_in("PriorDist")) check_numel(c, "PriorDist", x[x.rank() - 1]);
  c.same_as("Out", "X");
}

AB_OP(label_smooth)
    .doc("Out = (1 - epsilon) X + epsilon PriorDist; without PriorDist epsilon / number of classes.")
    .source("Szegedy et al., Rethinking the Inception architecture, arXiv:1512.00567")
    .in("X", "[..., classes] float")
    .in_optional("PriorDist", "[1, classes] like X")
    .out("Out", "[..., classes] like X")
    .may_share("X", "Out")
    .attr<float>("epsilon", 0.0f, "0 to 1")
    .infer(infer_smooth)
    .grad_reads({})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [epsilon = static_cast<T>(op.attr<float>("epsilon")), x = op.in("X"), prior = op.in("PriorDist"),
              out = op.out("Out")](KernelContext& c) {
        const int64_t classes = c[x].shape()[c[x].shape().rank() - 1];
        const T* from = c[x].data<T>();
        const T* shares = prior ? c[prior].data<T>() : nullptr;
        const T equal = epsilon / static_cast<T>(std::max<int64_t>(classes, 1));
        T* to = c[out].mutable_data<T>();
        c.parallel_each(c[x].numel(), kCheapGrain, [=](int64_t i) {
          to[i] = (1 - epsilon) * from[i] + (shares ? epsilon * shares[i % classes] : equal);
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("label_smooth"), epsilon = static_cast<double>(op.attr<float>("epsilon")),
              x = op.in("X"), prior = op.in("PriorDist"), out = op.out("Out")](const DeviceContext& c) {
        device::LossArgs a{};
        a.x = device::operand(c[x]);
        if (prior) a.prior = {c[prior].data<T>(), c[prior].bytes()};
        a.y = device::operand(c[out]);
        a.n = c[x].numel();
        a.classes = c[x].shape()[c[x].shape().rank() - 1];
        a.p[0] = epsilon;
        c.launch(kernel, a);
      };
    });

AB_GRAD(label_smooth)
    .doc("X@GRAD = (1 - epsilon) Out@GRAD.")
    .may_share("Out@GRAD", "X@GRAD")
    .infer([](InferContext& c) { grad_as(c, "X@GRAD", "Out@GRAD"); })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [factor = 1 - static_cast<T>(op.attr<float>("epsilon")), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        map(c, kCheapGrain, c[dout].numel(), c[dout].data<T>(), c[dx].mutable_data<T>(),
            [factor](T d) { return d * factor; });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto numbers = [factor = 1 - static_cast<device::Compute<T>>(op.attr<float>("epsilon"))](
                               const KernelContext&, device::ScalarArgs& a) { device::put(a, 0, factor); };
      return device::scalar<T>("scale", op.in("Out@GRAD"), op.out("X@GRAD"), numbers);
    });

}  // namespace
}  // namespace anabranch::loss::label_smooth_op
