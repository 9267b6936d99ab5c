// Is a block that `recurrent` runs for each step one step of long short-term memory?
#pragma once
#include <array>
#include <string>

#include "ir/program.h"

namespace anabranch {

// Names are those of the block.
struct LstmBlock {
  std::string why;                            // why it is none; empty when it is one
  size_t hidden_memory = 0, cell_memory = 0;  // which of the memories
  std::string x, weight, bias, forget_bias;   // the biases: empty when there are none
  bool state_first = false;                   // the rows of the state come first in the weight
  std::array<int, 4> order{};                 // places of candidate, input, forget and output among the gates
  // Of each output of `recurrent` whether it is the hidden state (or the cell).
  std::vector<bool> shows_hidden;
};

LstmBlock match_lstm(const ir::Block& block, const ir::Op& recurrent);

}  // namespace anabranch
