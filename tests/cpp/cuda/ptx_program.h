// A module of PTX as a list of instructions.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ptx_ops.h"

namespace anabranch::cuda {

enum class PtxSpace { kParam, kLocal, kGlobal };

struct PtxOperand {
  enum class Kind { kRegister, kNumber, kParam, kLocal };
  Kind kind;
  PtxWord value;       // the register, the number, or what is added to where parameters or local memory begin
  PtxWord offset = 0;  // of an address
};

struct PtxInstruction {
  enum class Kind { kCompute, kLoad, kStore, kJump, kReturn };
  Kind kind;
  int line;
  std::string name;
  int guard = -1;  // the register that holds whether it is done; -1: it is
  bool guard_is = true;
  const PtxOp* op = nullptr;
  PtxSpace space{};
  uint32_t bytes = 0;                // of a number that is loaded or stored
  std::vector<PtxOperand> operands;  // the result first
  size_t target = 0;                 // of a jump
};

struct PtxProgram {
  explicit PtxProgram(const std::string& text);  // std::runtime_error: it has what is not known here

  // The first registers are %ctaid.x, %ntid.x, %tid.x and %nctaid.x.
  static constexpr size_t kSpecials = 4;

  std::vector<PtxInstruction> instructions;
  std::map<std::string, size_t> entries;       // where they begin
  std::deque<std::vector<PtxWord>> constants;  // of the module, at the addresses that instructions have
  size_t registers = kSpecials, local_bytes = 0;
};

}  // namespace anabranch::cuda
