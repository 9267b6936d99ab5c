// Instructions of PTX that compute, as the host computes them: those that nvcc writes for step_functions.cu, and those
// that step_text.cc adds.
#pragma once
#include <cstdint>
#include <string>

namespace anabranch::cuda {

// The value of a register of any width: the bits above are 0.
using PtxWord = uint64_t;

struct PtxOp {
  int operands;
  PtxWord (*of)(const PtxWord* operands);
};

// Of "add.rn.f32"; null: there is none.
const PtxOp* find_ptx_op(const std::string& name);

}  // namespace anabranch::cuda
