// Batch norms with statistics over all replicas: the ops that the pass sync_batch_norm inserts around the sums over
// replicas.
#include "ops/nn/batch_norm_sums.h"

#include <algorithm>
#include <array>

#include "ops/device/lanes.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/nn/batch_norm_slots.h"

namespace anabranch::nn::batch_norm_sums_op {
namespace {

// The slots of all three ops, in the order of NormSumsArgs.
constexpr std::array kIns = {"X",         "Y@GRAD",        "Scale", "Bias",   "Mean", "Variance", "MomentumTensor",
                             "SavedMean", "SavedVariance", "Sums",  "OwnSums"};
constexpr std::array kOuts = {"Y",          "MeanOut",   "VarianceOut", "SavedMean", "SavedVariance",
                              "Scale@GRAD", "Bias@GRAD", "Sums"};

Out optional_out(const KernelArgs& op, std::string_view slot) {
  const auto& slots = op.op().outputs;
  const bool given = std::any_of(slots.begin(), slots.end(), [&](const ir::Slot& s) { return s.name == slot; });
  return given ? op.out(slot) : Out{};
}

class Operands {
 public:
  explicit Operands(const KernelArgs& op) : last_(channels_last(op.op())) {
    for (size_t k = 0; k < kIns.size(); ++k) ins_[k] = batch_norm::optional_in(op, kIns[k]);
    for (size_t k = 0; k < kOuts.size(); ++k) outs_[k] = optional_out(op, kOuts[k]);
    if (!outs_[0]) outs_[0] = optional_out(op, "X@GRAD");
    if (!op.op().has_attr("momentum")) return;
    epsilon_ = static_cast<double>(op.attr<float>("epsilon"));
    momentum_ = static_cast<double>(op.attr<float>("momentum"));
  }

  device::NormSumsArgs of(const KernelContext& c) const {
    const Channels d(c[ins_[0]].shape(), last_);
    const auto in = [&](size_t k) { return ins_[k] ? device::operand(c[ins_[k]]) : device::DeviceIn{}; };
    const auto out = [&](size_t k) { return c.needs(outs_[k]) ? device::operand(c[outs_[k]]) : device::DeviceOut{}; };
    return {in(0),  in(1),  in(2),  in(3),  in(4),  in(5),  in(6),  in(7),   in(8),      in(9),   in(10),   out(0),
            out(1), out(2), out(3), out(4), out(5), out(6), out(7), d.outer, d.channels, d.inner, epsilon_, momentum_};
  }

 private:
  std::array<In, kIns.size()> ins_;
  std::array<Out, kOuts.size()> outs_;
  bool last_;
  double epsilon_ = 0, momentum_ = 0;
};

struct HostAddress {
  template <class E, bool kWrites> static auto get(const device::DevicePtr<kWrites>& p) {
    return static_cast<typename device::DevicePtr<kWrites>::template Pointer<E>>(p.address);
  }
};

// Channels as rows of one lane.
template <template <class T> class Body> struct OnHost {
  template <class T> Kernel operator()(TypeTag<T>, const KernelArgs& op) const {
    return [operands = Operands(op)](KernelContext& c) {
      const Body<T> body{NormBySums<T>::template of<HostAddress>(operands.of(c))};
      const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, body.norm.count()));
      c.parallel_each(body.norm.channels, grain, [&](int64_t k) { body(device::OneLane(), k); });
    };
  }
};

struct Queued {
  const char* kernel;
  template <class T> Kernel operator()(TypeTag<T>, const KernelArgs& op) const {
    return [operands = Operands(op), kernel = device::kernel_of<T>(kernel)](const DeviceContext& c) {
      c.launch(kernel, operands.of(c));
    };
  }
};

void check_sums(InferContext& c, const char* slot) {
  const int64_t channels = batch_norm::infer_channels(c, "X");
  if (channels != kUnknown) check_numel(c, slot, 2 * channels + 1);
}

AB_OP(batch_norm_sums)
    .doc(
        "Sums = for each channel the sums of X and of X^2, or of Y@GRAD and of Y@GRAD times the normalized X, followed "
        "by the number of elements of a channel.")
    .in("X", "like X of batch_norm")
    .in_optional("SavedMean", "[C], with Y@GRAD")
    .in_optional("SavedVariance", "[C], with Y@GRAD: inverse deviations")
    .in_optional("Y@GRAD", "like X")
    .out("Sums", "[2 C + 1] float64")
    .with(layout_attr)
    .effects(kEngineOnly)
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      const int64_t channels = batch_norm::infer_channels(c, "X");
      c.set_out("Sums", Shape{channels == kUnknown ? kUnknown : 2 * channels + 1}, DType::kFloat64);
    })
    .no_grad("inserted after the gradients")
    .cpu<float, double>(OnHost<AddUp>())
    .device<float, double, float16, bfloat16>(Queued{"batch_norm_sums"});

AB_OP(batch_norm_by_sums)
    .doc("batch_norm by the sums of a batch that contains X.")
    .with(batch_norm::declare_moving)
    .in("Sums", "[2 C + 1] float64: batch_norm_sums over all replicas")
    .out("SavedMean", "[C]")
    .out("SavedVariance", "[C]: inverse deviations")
    .effects(kEngineOnly)
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_sums(c, "Sums");
      c.same_as("Y", "X");
      for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
        c.set_out(slot, c.in("Scale").shape, c.in("Scale").dtype);
      }
    })
    .no_grad("inserted after the gradients")
    .cpu<float, double>(OnHost<Normalize>())
    .device<float, double, float16, bfloat16>(Queued{"batch_norm_by_sums"});

AB_OP(batch_norm_grad_by_sums)
    .doc(
        "Gradients of batch_norm_by_sums with respect to X, by the sums over all replicas, and to Scale and Bias of "
        "this replica.")
    .in("X", "like X of batch_norm")
    .in("Scale", "[C]")
    .in("SavedMean", "[C]")
    .in("SavedVariance", "[C]: inverse deviations")
    .in("Y@GRAD", "like X")
    .in("Sums", "[2 C + 1] float64: batch_norm_sums over all replicas")
    .in("OwnSums", "[2 C + 1] float64: batch_norm_sums of this replica")
    .out("X@GRAD", "like X")
    .out_optional("Scale@GRAD", "[C]")
    .out_optional("Bias@GRAD", "[C]")
    .with(layout_attr)
    .effects(kEngineOnly)
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      for (const char* slot : {"Sums", "OwnSums"}) check_sums(c, slot);
      c.same_as("X@GRAD", "X");
      c.same_as("Scale@GRAD", "Scale");
      c.same_as("Bias@GRAD", "Scale");
    })
    .no_grad("inserted after the gradients")
    .cpu<float, double>(OnHost<Differentiate>())
    .device<float, double, float16, bfloat16>(Queued{"batch_norm_grad_by_sums"});

}  // namespace
}  // namespace anabranch::nn::batch_norm_sums_op
