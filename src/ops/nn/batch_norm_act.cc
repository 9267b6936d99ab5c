// batch_norm with relu behind it: each piece of Y is cut off while it is in the cache, and the gradient takes relu's
// derivative, which follows from Y, in its first reading of Y@GRAD. The same bits as the two ops by themselves.
#include "ops/device/batch_norm_call.h"
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

// ---- on devices

namespace {

void check_for_device(const KernelArgs& op) {
  AB_CHECK(channels_last(op.op()) || op.attr<bool>(kMatrix), Unsupported, "devices take in relu with channels last");
  AB_CHECK(!fixed_statistics(op.op()), Unsupported, "devices take in relu with statistics of the batch");
}

}  // namespace

// Of one element a channel relu goes over what the library's call has left in Y.
template <class T> Kernel queued_relu_forward(const KernelArgs& op) {
  check_for_device(op);
  AB_CHECK(!op.in("MomentumTensor"), Unsupported, "the library calls of devices take momentum as an attribute");
  using device::wanted_by;
  return [call = device::BatchNormCall<T, device::BatchNormArgs>("batch_norm", "batch_norm_last_relu", op, false),
          relu = device::kernel_of<T>("map/relu"), x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"),
          mean = op.in("Mean"), variance = op.in("Variance"), y = op.out("Y"), mean_out = op.out("MeanOut"),
          variance_out = op.out("VarianceOut"), own_mean = op.out("SavedMean"),
          own_variance = op.out("SavedVariance")](KernelContext& c) mutable {
    const DeviceContext& there = DeviceContext::of(c);
    call.run(
        there, c[x].shape(),
        {read_by(c[x]), read_by(c[scale]), read_by(c[bias]), read_by(c[mean]), read_by(c[variance]), written_by(c[y]),
         wanted_by(c, mean_out), wanted_by(c, variance_out), written_by(c[own_mean]), written_by(c[own_variance])});
    if (call.by_kernel(c[x].shape())) return;
    const Tensor& made = c[y];
    there.launch(relu, device::MapArgs{device::operand(made), device::operand(c[y]), made.numel(), {}});
  };
}

// Of one element a channel the library's call hands on in X@GRAD what relu has let through.
template <class T> Kernel queued_relu_backward(const KernelArgs& op) {
  check_for_device(op);
  using device::operand, device::wanted_by;
  return [call = device::BatchNormCall<T, device::BatchNormGradArgs>("batch_norm_grad", "batch_norm_last_relu_grad", op,
                                                                     false),
          relu = device::kernel_of<T>("map_grad/relu"), x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"),
          y = op.in("Y"), dy = op.in("Y@GRAD"), own_mean = op.in("SavedMean"), own_variance = op.in("SavedVariance"),
          dx = op.out("X@GRAD"), dscale = op.out("Scale@GRAD"), dbias = op.out("Bias@GRAD")](KernelContext& c) mutable {
    const DeviceContext& there = DeviceContext::of(c);
    ab_operand gradient = read_by(c[dy]);
    if (!call.by_kernel(c[x].shape()) && c.wants(dx)) {
      there.launch(relu, device::MapGradArgs{{}, operand(c[y]), operand(c[dy]), operand(c[dx]), c[dy].numel(), {}});
      gradient = read_by(c[dx]);
    }
    const ab_operand none = {nullptr, 0, AB_READ, 0};
    call.run(there, c[x].shape(),
             {read_by(c[x]), read_by(c[scale]), gradient, read_by(c[own_mean]), read_by(c[own_variance]), none, none,
              wanted_by(c, dx), wanted_by(c, dscale), wanted_by(c, dbias)},
             [&](device::BatchNormGradArgs& a) { bias ? a.bias = operand(c[bias]) : a.y = operand(c[y]); });
  };
}

template Kernel queued_relu_forward<float>(const KernelArgs&);
template Kernel queued_relu_forward<double>(const KernelArgs&);
template Kernel queued_relu_forward<float16>(const KernelArgs&);
template Kernel queued_relu_forward<bfloat16>(const KernelArgs&);
template Kernel queued_relu_backward<float>(const KernelArgs&);
template Kernel queued_relu_backward<double>(const KernelArgs&);
template Kernel queued_relu_backward<float16>(const KernelArgs&);
template Kernel queued_relu_backward<bfloat16>(const KernelArgs&);

}  // namespace anabranch::nn::batch_norm
