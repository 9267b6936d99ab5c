// Shared by the ops lstm and lstmp and their gradients. Columns of a row of gates: candidate, input, forget, output.
// lstmp passes a projection of the hidden state from step to step, lstm the hidden state itself.
#pragma once
#include "ops/sequence/lstm_panels.h"

namespace anabranch::sequence {

struct LstmOptions {
  Act gate, cell, candidate, projection = Act::kIdentity;
  bool peepholes, reverse, projected;
  float cell_clip = 0, proj_clip = 0;
  explicit LstmOptions(const ir::Op& op)
      : gate(act_named(op.attr<std::string>("gate_activation"))),
        cell(act_named(op.attr<std::string>("cell_activation"))),
        candidate(act_named(op.attr<std::string>("candidate_activation"))),
        peepholes(op.attr<bool>("use_peepholes")),
        reverse(op.attr<bool>("is_reverse")),
        projected(op.type.starts_with("lstmp")) {
    if (!projected) return;
    projection = act_named(op.attr<std::string>("proj_activation"));
    cell_clip = op.attr<float>("cell_clip");
    proj_clip = op.attr<float>("proj_clip");
  }
};

// Weights of the cell state in the gates; null if there are none.
template <class T> struct Peepholes {
  const T *input = nullptr, *forget = nullptr, *output = nullptr;
  Peepholes(const T* bias, int64_t d, bool on) {
    if (!on) return;
    input = bias + 4 * d;
    forget = input + d;
    output = forget + d;
  }
};

// Arguments of LstmPanels, without projection.
inline LstmPanels::Weights panel_weights(const LstmOptions& with, const float* weight, const float* bias, int64_t d) {
  const Peepholes<float> peep(bias, d, with.peepholes);
  return {weight,
          d,
          {0, 1, 2, 3},
          {with.gate, with.cell, with.candidate, peep.input, peep.forget, peep.output, with.cell_clip}};
}

struct LstmDims {
  int64_t d = kUnknown, p = kUnknown;  // of the cell, and of the state passed from step to step
};
// Weight [p, 4 d], ProjWeight [d, p] if there is a projection, Bias.
LstmDims check_lstm(const InferContext& c);

template <class T> Kernel lstm_forward(const KernelArgs& op);
template <class T> Kernel lstm_backward(const KernelArgs& op);
// On devices.
template <class T> Kernel queued_lstm_forward(const KernelArgs& op);
template <class T> Kernel queued_lstm_backward(const KernelArgs& op);

}  // namespace anabranch::sequence
