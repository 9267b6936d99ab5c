// Out = w X, or w if X is not given, on a device: for ops that weight the gradient of a loss (loss_weight.h).
#pragma once
#include "ops/device/launch_math.h"
#include "ops/device/launch_tensor.h"

namespace anabranch::device {

template <class T> class Weigh {
 public:
  explicit Weigh(const KernelArgs& op)
      : x_(op.in("X")),
        out_(op.out("Out")),
        scale_(kernel_of<T>("scalar/scale")),
        fill_(kernel_of_size("fill", sizeof(T))) {}
  void operator()(const DeviceContext& queued, double weight) const {
    const T w = static_cast<T>(weight);
    if (!x_) return queued.launch(fill_, filled(queued[out_], w));
    ScalarArgs a{};
    put(a, 0, w);
    a.flags = 1;
    launch_scalar(queued, scale_, a, queued[x_], queued[out_]);
  }

 private:
  const In x_;
  const Out out_;
  const ab_kernel scale_, fill_;
};

}  // namespace anabranch::device
