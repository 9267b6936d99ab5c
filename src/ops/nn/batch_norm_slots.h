// The slots of the ops that normalize channels over the batch: batch_norm, fused_batch_norm_act and inplace_abn, and
// their declarations in common. The default handles are those of a kernel whose operands have the order of the library
// calls "batch_norm" and "batch_norm_grad" (ops/device/args_library.h).
#pragma once
#include "opdef/op_def.h"
#include "ops/nn/channels.h"

namespace anabranch::nn::batch_norm {

inline bool fixed_statistics(const ir::Op& op) {
  const bool test = op.attr<bool>("is_test") && !op.attr<bool>("trainable_statistics");
  return test || op.attr<bool>("use_global_stats");
}

inline In optional_in(const KernelArgs& op, const char* slot) { return op.has_in(slot) ? op.in(slot) : In{}; }

struct ForwardSlots {
  In x{0, 1}, scale{1, 1}, bias{2, 1}, mean{3, 1}, variance{4, 1}, momentum_in;
  Out y{0, 1}, mean_out{1, 1}, variance_out{2, 1}, saved_mean{3, 1}, saved_variance{4, 1};
  bool fixed = false, last = false;
  float epsilon = 0, momentum = 0;
};

inline ForwardSlots forward_slots(const KernelArgs& op) {
  return {op.in("X"),
          op.in("Scale"),
          op.in("Bias"),
          op.in("Mean"),
          op.in("Variance"),
          op.in("MomentumTensor"),
          op.out("Y"),
          op.out("MeanOut"),
          op.out("VarianceOut"),
          op.out("SavedMean"),
          op.out("SavedVariance"),
          fixed_statistics(op.op()),
          channels_last(op.op()),
          op.attr<float>("epsilon"),
          op.attr<float>("momentum")};
}

struct BackwardSlots {
  In x{0, 1}, scale{1, 1}, dy{2, 1}, saved_mean{3, 1}, saved_variance{4, 1}, mean{5, 1}, variance{6, 1};
  In y;  // of fused_batch_norm_act, and of inplace_abn, which has no x
  Out dx{0, 1}, dscale{1, 1}, dbias{2, 1};
  bool fixed = false, last = false;
  float epsilon = 0;
};

inline BackwardSlots backward_slots(const KernelArgs& op) {
  return {optional_in(op, "X"),   op.in("Scale"),           op.in("Y@GRAD"),
          op.in("SavedMean"),     op.in("SavedVariance"),   op.in("Mean"),
          op.in("Variance"),      optional_in(op, "Y"),     op.out("X@GRAD"),
          op.out("Scale@GRAD"),   op.out("Bias@GRAD"),      fixed_statistics(op.op()),
          channels_last(op.op()), op.attr<float>("epsilon")};
}

// ---- declarations

int64_t infer_channels(InferContext& c, const char* image);
void infer(InferContext& c);
void infer_grad(InferContext& c, const char* image);
// The gradient op `type` with `image`, X or Y, as in this slot.
void differentiate(GradContext& g, const char* type, const char* slot, std::vector<std::string> image);

void declare_moving(OpDef& def);    // the inputs, Y, the moving statistics, their momentum and epsilon
void declare_forward(OpDef& def);   // the whole forward op
void declare_backward(OpDef& def);  // the gradient op, except X, Y and Bias

// Kernels for devices, followed by relu or not. The attribute kMatrix of the ops with relu: X is a matrix, whose
// channels are last in any layout.
inline constexpr const char* kMatrix = "matrix";
void forward_on_devices(OpDef& def, bool relu);
void backward_on_devices(OpDef& def, bool relu);

}  // namespace anabranch::nn::batch_norm
