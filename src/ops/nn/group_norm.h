// Parts of group and instance normalization that their kernels for all layouts share.
#pragma once
#include "opdef/kernel_context.h"

namespace anabranch::nn::group_norm {

// The differences of the two types.
struct Form {
  const char *mean, *variance;  // output slots
  bool inverse;                 // the second one holds 1 / sqrt(variance + epsilon)
};

// Inputs of a gradient.
struct Source {
  bool centered, of_y;  // the gradient of the mean is included; Y is read instead of X
  Source(const KernelArgs& op, const Form& form);
};

int64_t groups_of(const ir::Op& op);  // 0: a group for each channel

// Images in blocked layout.
Kernel blocked_forward(const KernelArgs& op, const Form& form);
Kernel blocked_backward(const KernelArgs& op, const Form& form);

}  // namespace anabranch::nn::group_norm
