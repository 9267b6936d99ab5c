// elementwise_add of images in blocked layout (ops/nn/blocked.h) and one number per channel, and its gradient.
#pragma once
#include "opdef/kernel_context.h"

namespace anabranch::math {

Kernel add_channels(const KernelArgs& op);
Kernel add_channels_grad(const KernelArgs& op);

}  // namespace anabranch::math
