// Shared by the ops lstm and lstmp and their gradients. Columns of a row of gates: candidate, input, forget, output.
// lstmp passes a projection of the hidden state from step to step, lstm the hidden state itself.
#pragma once
#include "base/flags.h"
#include "ops/sequence/lstm_run.h"

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
    // Fluid 1.8.5 applies the activation of the cell instead, unless proj_activation is identity.
    if (Flags::exact_fluid() && projection != Act::kIdentity) projection = cell;
    cell_clip = op.attr<float>("cell_clip");
    proj_clip = op.attr<float>("proj_clip");
  }
  device::LstmRule rule() const { return lstm_rule(gate, candidate, cell, {0, 1, 2, 3}, cell_clip); }
};

struct LstmDims {
  int64_t d = kUnknown, p = kUnknown;  // of the cell, and of the state passed from step to step
};
// Weight [p, 4 d], ProjWeight [d, p] if there is a projection, Bias.
LstmDims check_lstm(const InferContext& c);

// Declare the kernels.
void lstm_forward(OpDef& def);
void lstm_backward(OpDef& def);

}  // namespace anabranch::sequence
