// The kernel of one table of steps ("element_steps", args_steps.h) as PTX that does not read the table: the numbers of
// a step are constants in the instructions, and its operands are registers.
#pragma once
#include <span>
#include <string>

#include "ops/device/args_steps.h"
#include "ptx_functions.h"

namespace anabranch::cuda {

inline constexpr const char *kOneEntry = "element_steps_one", *kPackEntry = "element_steps_pack";

struct StepType {
  std::string name;  // "f32", "f16", "bf16"
  bool is_narrow() const { return name != "f32"; }
  int bytes() const { return is_narrow() ? 2 : 4; }
};

// How many elements, 16, 8 or 4 bytes of them, a lane reads and writes at once; 1: kPackEntry is not written. Steps are
// written out for each element, and compilers take a second for a megabyte.
int elements_of_pack(const PtxFunctions& functions, std::span<const device::ElementStep> steps, const StepType& type);

// A module with two entries, whose parameter is ElementStepsArgs: kOneEntry takes an element a lane, kPackEntry a pack,
// where all inputs have as many elements as the results, begin at a multiple of a pack's bytes, and make whole packs.
// Internal for steps that read what is not there.
std::string step_text(const PtxFunctions& functions, std::span<const device::ElementStep> steps, const StepType& type);

}  // namespace anabranch::cuda
