// Reverse-mode differentiation, Program to Program: reads the ops of a block, appends the ops of their gradients.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace anabranch {

struct BackwardOptions {
  std::vector<std::string> parameters;   // empty: every trainable parameter, in program order
  std::set<std::string> no_grad;         // variables without gradients, in addition to those with stop_gradient
  std::vector<std::string> checkpoints;  // ops between them are recomputed (recompute.h); empty: none
  int block = 0;                         // the block of the loss, and of the gradients: a branch may train by itself
  // Called after each gradient op is appended (error clip), except the op that starts with the gradient of the loss.
  std::function<void(ir::Block&, const ir::Op&)> after_op;
};

// Appends the gradient of `loss` (one element) to its program; returns (parameter, gradient) names in the order of
// options.parameters. Gradients of a variable with several uses are summed by an op `sum`.
std::vector<std::pair<std::string, std::string>> append_backward(ir::Program& program, const std::string& loss,
                                                                 const BackwardOptions& options);

// Gradients of targets of a block (weighted by target_grads; "" = ones) with respect to each input: names, "" for
// independent ones.
std::vector<std::string> gradients(ir::Program& program, const std::vector<std::string>& targets,
                                   const std::vector<std::string>& inputs, const std::vector<std::string>& target_grads,
                                   const std::set<std::string>& no_grad, int block = 0);

}  // namespace anabranch
