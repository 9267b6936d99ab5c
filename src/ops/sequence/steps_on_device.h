// The device kernels of lstm_steps, gru_steps and simple_steps, and of their gradients.
#pragma once
#include <vector>

#include "opdef/op_def.h"

namespace anabranch::sequence {

// order: positions of candidate, input, forget and output gate.
Kernel queued_lstm_steps(const KernelArgs& op, const std::vector<int32_t>& order);
Kernel queued_lstm_steps_grad(const KernelArgs& op, const std::vector<int32_t>& order);
Kernel queued_gru_steps(const KernelArgs& op);
Kernel queued_gru_steps_grad(const KernelArgs& op);
Kernel queued_simple_steps(const KernelArgs& op);
Kernel queued_simple_steps_grad(const KernelArgs& op);

}  // namespace anabranch::sequence
