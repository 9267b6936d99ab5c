// batch_norm followed by relu: the loop that computes Y applies relu, and those that read Y@GRAD apply its derivative,
// a function of Y. On devices a residual may be added before relu. The same bits as the separate ops.
#include <utility>

#include "ops/device/args_math.h"
#include "ops/device/batch_norm_call.h"
#include "ops/nn/batch_norm.h"
#include "ops/nn/blocked.h"

namespace anabranch::nn::batch_norm {
namespace {

struct ReluForward : Forward<float> {
  explicit ReluForward(const KernelArgs& op) : Forward<float>(op) {}
  void operator()(KernelContext& c) { compute(c, true); }
};

struct ReluBackward : Backward<float> {
  In y;
  explicit ReluBackward(const KernelArgs& op) : Backward<float>(op), y(op.in("Y")) {}
  void operator()(KernelContext& c) { compute(c, {c[dy].data<float>(), c[y].data<float>()}); }
};

}  // namespace

Kernel relu_forward(const KernelArgs& op) {
  AB_CHECK(!op.in("Z"), Unsupported, "{}: Z must not be given: residual addition is fused on devices only",
           op.op().type);
  return is_blocked(op.op(), kBlocked) ? blocked_forward(op, true) : Kernel(ReluForward(op));
}
Kernel relu_backward(const KernelArgs& op) {
  AB_CHECK(!op.out("Z@GRAD"), Unsupported,
           "{}: Z@GRAD must not be requested: residual addition is fused on devices only", op.op().type);
  return is_blocked(op.op(), kBlocked) ? blocked_backward(op, true) : Kernel(ReluBackward(op));
}

// ---- on devices

namespace {

using device::operand;

void check_for_device(const KernelArgs& op) {
  AB_CHECK(channels_last(op.op()) || op.attr<bool>(kMatrix), Unsupported,
           "relu is fused on devices only with channels last");
  AB_CHECK(!fixed_statistics(op.op()), Unsupported, "relu is fused on devices only with statistics of the batch");
}

// to = a + b, where `to` may alias a.
void add_up(const DeviceContext& there, ab_kernel sum, const Tensor& a, const Tensor& b, Tensor& to) {
  device::SumArgs args{};
  args.x[0] = operand(a);
  args.x[1] = operand(b);
  args.y = operand(to);
  args.n = a.numel();
  args.count = 2;
  there.launch(sum, args);
}

template <class T> struct QueuedForward {
  In x, scale, bias, mean, variance, z;
  Out y, mean_out, variance_out, own_mean, own_variance;
  device::BatchNormCall<T, device::BatchNormArgs> call;
  ab_kernel relu = device::kernel_of<T>("map/relu"), sum = device::kernel_of<T>("sum");

  explicit QueuedForward(const KernelArgs& op)
      : x(op.in("X")),
        scale(op.in("Scale")),
        bias(op.in("Bias")),
        mean(op.in("Mean")),
        variance(op.in("Variance")),
        z(op.in("Z")),
        y(op.out("Y")),
        mean_out(op.out("MeanOut")),
        variance_out(op.out("VarianceOut")),
        own_mean(op.out("SavedMean")),
        own_variance(op.out("SavedVariance")),
        call("batch_norm", z ? "batch_norm_last_add_relu" : "batch_norm_last_relu", op, false) {}

  void operator()(KernelContext& c) {
    using device::needed_by;
    const DeviceContext& there = DeviceContext::of(c);
    call.run(
        there, c[x].shape(),
        {read_by(c[x]), read_by(c[scale]), read_by(c[bias]), read_by(c[mean]), read_by(c[variance]), written_by(c[y]),
         needed_by(c, mean_out), needed_by(c, variance_out), written_by(c[own_mean]), written_by(c[own_variance])},
        [&](device::BatchNormArgs& a) {
          if (z) a.z = operand(c[z]);
        });
    if (!call.by_kernel(c[x].shape())) finish(c, there);
  }

  // With one element per channel, the remaining steps are applied to the Y that the library's call computed.
  void finish(KernelContext& c, const DeviceContext& there) const {
    const Tensor& made = c[y];
    if (z) add_up(there, sum, made, c[z], c[y]);
    there.launch(relu, device::MapArgs{operand(made), operand(c[y]), made.numel(), {}});
  }
};

template <class T> struct QueuedBackward {
  In x, scale, bias, y, dy, more, own_mean, own_variance;
  Out dx, dscale, dbias, dz;
  device::BatchNormCall<T, device::BatchNormGradArgs> call;
  ab_kernel relu = device::kernel_of<T>("map_grad/relu"), sum = device::kernel_of<T>("sum");

  explicit QueuedBackward(const KernelArgs& op)
      : x(op.in("X")),
        scale(op.in("Scale")),
        bias(op.in("Bias")),
        y(op.in("Y")),
        dy(op.in("Y@GRAD")),
        more(op.in("MoreY@GRAD")),
        own_mean(op.in("SavedMean")),
        own_variance(op.in("SavedVariance")),
        dx(op.out("X@GRAD")),
        dscale(op.out("Scale@GRAD")),
        dbias(op.out("Bias@GRAD")),
        dz(op.out("Z@GRAD")),
        call("batch_norm_grad", dz ? "batch_norm_last_add_relu_grad" : "batch_norm_last_relu_grad", op, false) {}

  void operator()(KernelContext& c) {
    using device::needed_by;
    const DeviceContext& there = DeviceContext::of(c);
    const bool by_kernel = call.by_kernel(c[x].shape());
    const ab_operand none = {nullptr, 0, AB_READ, 0};
    call.run(
        there, c[x].shape(),
        {read_by(c[x]), read_by(c[scale]), by_kernel ? read_by(c[dy]) : let_through(c, there), read_by(c[own_mean]),
         read_by(c[own_variance]), none, none, needed_by(c, dx), needed_by(c, dscale), needed_by(c, dbias)},
        [&](device::BatchNormGradArgs& a) { add_operands(c, a); });
  }

  void add_operands(KernelContext& c, device::BatchNormGradArgs& a) const {
    if (bias && !dz) {
      a.bias = operand(c[bias]);
    } else {
      a.y = operand(c[y]);
    }
    if (more) a.more = operand(c[more]);
    if (dz) a.dz = operand(c[dz]);
  }

  // With one element per channel: copies the gradient that the library's call would pass on, after relu, in Z@GRAD or
  // X@GRAD.
  ab_operand let_through(KernelContext& c, const DeviceContext& there) const {
    if (!dz && !c.needs(dx)) return read_by(c[dy]);
    Tensor& to = c[dz ? dz : dx];
    if (more) add_up(there, sum, c[dy], c[more], to);
    const Tensor& whole = more ? std::as_const(to) : c[dy];
    there.launch(relu, device::MapGradArgs{{}, operand(c[y]), operand(whole), operand(to), whole.numel(), {}});
    return read_by(to);
  }
};

}  // namespace

template <class T> Kernel queued_relu_forward(const KernelArgs& op) {
  check_for_device(op);
  AB_CHECK(!op.in("MomentumTensor"), Unsupported,
           "MomentumTensor is not supported on devices, whose library calls take momentum as an attribute");
  return QueuedForward<T>(op);
}

template <class T> Kernel queued_relu_backward(const KernelArgs& op) {
  check_for_device(op);
  return QueuedBackward<T>(op);
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
