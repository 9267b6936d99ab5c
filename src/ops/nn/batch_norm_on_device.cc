// batch_norm and its gradient on devices: by the library, except with the channels last and statistics of the batch,
// where the kernels of batch_norm_last.cu are many times faster. These fuse relu, and the addition of a residual before
// it, with the same bits as the separate ops.
#include <utility>

#include "ops/device/args_math.h"
#include "ops/device/batch_norm_operands.h"
#include "ops/device/launch.h"
#include "ops/device/operands.h"
#include "ops/nn/batch_norm_slots.h"

namespace anabranch::nn::batch_norm {
namespace {

using device::given_to;
using device::needed_by;
using device::operand;

// The library call `key`, or the kernel `last_kernel` with its Args; and what else relu and a residual need.
template <class T, class Args> class QueuedNorm {
 public:
  QueuedNorm(const char* key, const char* last_kernel, const KernelArgs& op, bool relu)
      : relu_(relu),
        call_(key),
        kernel_(device::kernel_of<T>(last_kernel)),
        sum_(device::kernel_of<T>("sum")),
        last_(channels_last(op.op())) {
    desc_.epsilon = static_cast<double>(op.attr<float>("epsilon"));
    desc_.momentum = static_cast<double>(op.attr<float>("momentum"));
    desc_.fixed = fixed_statistics(op.op());
    desc_.dtype = static_cast<int32_t>(dtype_of<T>);
    AB_CHECK(!relu || last_ || op.attr<bool>(kMatrix), Unsupported, "relu is fused on devices only with channels last");
    AB_CHECK(!relu || !desc_.fixed, Unsupported, "relu is fused on devices only with statistics of the batch");
  }

 protected:
  // Whether the kernel runs for this shape instead of the library.
  bool by_kernel(const Shape& x) const {
    const Channels d(x, last_);
    return !desc_.fixed && d.inner == 1 && d.outer > 1 && d.channels > 0;
  }
  // add(args): sets arguments of the kernel that the library does not have.
  template <class Add>
  void call(const DeviceContext& c, const Shape& x, std::initializer_list<ab_operand> operands, Add&& add) {
    const Channels d(x, last_);
    desc_.outer = d.outer;
    desc_.channels = d.channels;
    desc_.inner = d.inner;
    if (!by_kernel(x)) return call_.run(c, desc_, operands);
    Args a{};
    take(a, operands.begin());
    add(a);
    a.outer = d.outer;
    a.channels = d.channels;
    a.inner = 1;
    a.epsilon = desc_.epsilon;
    if constexpr (requires { a.momentum; }) a.momentum = desc_.momentum;
    c.launch(kernel_, a);
  }
  // to = a + b, where `to` may alias a.
  void add_up(const DeviceContext& c, const Tensor& a, const Tensor& b, Tensor& to) const {
    device::SumArgs args{};
    args.x[0] = operand(a);
    args.x[1] = operand(b);
    args.y = operand(to);
    args.n = a.numel();
    args.count = 2;
    c.launch(sum_, args);
  }

  const bool relu_;

 private:
  LibraryCall call_;
  const ab_kernel kernel_, sum_;
  const bool last_;
  device::BatchNormDesc desc_{};
};

template <class T> class QueuedForward : ForwardSlots, QueuedNorm<T, device::BatchNormArgs> {
 public:
  QueuedForward(const KernelArgs& op, bool relu)
      : ForwardSlots(forward_slots(op)),
        QueuedNorm<T, device::BatchNormArgs>("batch_norm", kernel_for(op, relu), op, relu),
        z_(optional_in(op, "Z")),
        cut_off_(device::kernel_of<T>("map/relu")) {
    AB_CHECK(!momentum_in, Unsupported,
             "MomentumTensor is not supported on devices, whose library calls take momentum as an attribute");
  }

  void operator()(const DeviceContext& c) {
    const Shape& shape = c[x].shape();
    this->call(
        c, shape,
        {read_by(c[x]), read_by(c[scale]), read_by(c[bias]), read_by(c[mean]), read_by(c[variance]), written_by(c[y]),
         needed_by(c, mean_out), needed_by(c, variance_out), written_by(c[saved_mean]), written_by(c[saved_variance])},
        [&](device::BatchNormArgs& a) {
          if (z_) a.z = operand(c[z_]);
        });
    if (!this->relu_ || this->by_kernel(shape)) return;
    // With one element per channel, the remaining steps are applied to the Y that the library's call computed.
    const Tensor& made = c[y];
    if (z_) this->add_up(c, made, c[z_], c[y]);
    c.launch(cut_off_, device::MapArgs{operand(made), operand(c[y]), made.numel(), {}});
  }

 private:
  static const char* kernel_for(const KernelArgs& op, bool relu) {
    return !relu ? "batch_norm_last" : op.in("Z") ? "batch_norm_last_add_relu" : "batch_norm_last_relu";
  }

  const In z_;
  const ab_kernel cut_off_;
};

template <class T> class QueuedBackward : BackwardSlots, QueuedNorm<T, device::BatchNormGradArgs> {
 public:
  QueuedBackward(const KernelArgs& op, bool relu)
      : BackwardSlots(backward_slots(op)),
        QueuedNorm<T, device::BatchNormGradArgs>("batch_norm_grad", kernel_for(op, relu), op, relu),
        bias_(op.in("Bias")),
        more_(optional_in(op, "MoreY@GRAD")),
        dz_(relu ? op.out("Z@GRAD") : Out{}),
        let_through_(device::kernel_of<T>("map_grad/relu")) {}

  void operator()(const DeviceContext& c) {
    const Shape& shape = c[x].shape();
    this->call(
        c, shape,
        {read_by(c[x]), read_by(c[scale]), !this->relu_ || this->by_kernel(shape) ? read_by(c[dy]) : let_through(c),
         read_by(c[saved_mean]), read_by(c[saved_variance]), given_to(c, mean), given_to(c, variance), needed_by(c, dx),
         needed_by(c, dscale), needed_by(c, dbias)},
        [&](device::BatchNormGradArgs& a) {
          if (this->relu_) add_operands(c, a);
        });
  }

 private:
  static const char* kernel_for(const KernelArgs& op, bool relu) {
    return !relu              ? "batch_norm_last_grad"
           : op.out("Z@GRAD") ? "batch_norm_last_add_relu_grad"
                              : "batch_norm_last_relu_grad";
  }

  void add_operands(const KernelContext& c, device::BatchNormGradArgs& a) const {
    if (bias_ && !dz_) {
      a.bias = operand(c[bias_]);
    } else {
      a.y = operand(c[y]);
    }
    if (more_) a.more = operand(c[more_]);
    if (dz_) a.dz = operand(c[dz_]);
  }

  // With one element per channel: copies the gradient that the library's call would pass on, after relu, in Z@GRAD or
  // X@GRAD.
  ab_operand let_through(const DeviceContext& c) const {
    if (!dz_ && !c.needs(dx)) return read_by(c[dy]);
    Tensor& to = c[dz_ ? dz_ : dx];
    if (more_) this->add_up(c, c[dy], c[more_], to);
    const Tensor& whole = more_ ? std::as_const(to) : c[dy];
    c.launch(let_through_, device::MapGradArgs{{}, operand(c[y]), operand(whole), operand(to), whole.numel(), {}});
    return read_by(to);
  }

  const In bias_, more_;
  const Out dz_;
  const ab_kernel let_through_;
};

}  // namespace

void forward_on_devices(OpDef& def, bool relu) {
  device::offer<float, double>(
      def, [relu]<class T>(TypeTag<T>, const KernelArgs& op) { return QueuedForward<T>(op, relu); });
}
void backward_on_devices(OpDef& def, bool relu) {
  device::offer<float, double>(
      def, [relu]<class T>(TypeTag<T>, const KernelArgs& op) { return QueuedBackward<T>(op, relu); });
}

}  // namespace anabranch::nn::batch_norm
