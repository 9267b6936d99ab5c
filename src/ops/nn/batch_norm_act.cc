// batch_norm with relu behind it: each piece of Y is cut off while it is in the cache, and the gradient takes relu's
// derivative, which follows from Y, in its first reading of Y@GRAD. The same bits as the two ops by themselves.
#include "ops/kernels/simd.h"
#include "ops/nn/batch_norm.h"
#include "ops/nn/blocked.h"

namespace anabranch::nn::batch_norm {
namespace {

struct ReluForward : Forward<float> {
  explicit ReluForward(const KernelArgs& op) : Forward<float>(op) {}
  void operator()(KernelContext& c) {
    float* to = vector(c, y);
    compute(c, [to](int64_t begin, int64_t end) { simd::relu(to + begin, to + begin, end - begin); });
  }
};

struct ReluBackward : Backward<float> {
  In y;
  explicit ReluBackward(const KernelArgs& op) : Backward<float>(op), y(op.in("Y")) {}
  void operator()(KernelContext& c) { compute(c, Masked{c[y].data<float>(), c[dy].data<float>()}); }
};

}  // namespace

Kernel relu_forward(const KernelArgs& op) {
  return is_blocked(op.op(), kBlocked) ? blocked_forward(op, true) : Kernel(ReluForward(op));
}
Kernel relu_backward(const KernelArgs& op) {
  return is_blocked(op.op(), kBlocked) ? blocked_backward(op, true) : Kernel(ReluBackward(op));
}

}  // namespace anabranch::nn::batch_norm
