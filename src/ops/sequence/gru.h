// The device kernels of gru.
#pragma once
#include "opdef/op_def.h"

namespace anabranch::sequence {

template <class T> Kernel queued_gru_forward(const KernelArgs& op);
template <class T> Kernel queued_gru_backward(const KernelArgs& op);

}  // namespace anabranch::sequence
