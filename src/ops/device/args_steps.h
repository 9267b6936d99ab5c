// Arguments of "element_steps", the kernel of fused_elementwise.
#pragma once
#include "opdef/fused_ops.h"
#include "ops/device/args.h"

namespace anabranch::device {

inline constexpr uint8_t kNowhere = 255;

// Layout in device memory. Operands: the inputs by their number, followed by the stored results. A step reads the
// result of the step just before from a register, not from there.
struct alignas(16) ElementStep {
  uint8_t code;      // math::StepCode
  uint8_t kept;      // the operand under which later steps read the result
  uint8_t out;       // the output that stores it
  uint8_t previous;  // bit k: operand k is the result of the step before
  uint8_t operands[4];
  float p[4];
  uint8_t count;  // of operands
  uint8_t exact;  // 1: 16-bit results are not rounded, like partial sums
  uint8_t reserved[6];
};
static_assert(sizeof(ElementStep) == 32);

// Element i of the results is paired with element i / repeat % period; period 0: element i.
struct StepInput {
  DeviceIn x;
  int64_t repeat, period;
};

struct ElementStepsArgs {
  StepInput in[fused::kMaxInputs];
  DeviceOut out[fused::kMaxOutsOnDevices];
  DeviceIn steps;
  int64_t n;
  int32_t inputs, outs, count, reserved;
};
static_assert(is_plain_args<ElementStepsArgs> && sizeof(ElementStepsArgs) <= 4096);

}  // namespace anabranch::device
