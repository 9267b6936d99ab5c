// The computation of the op fused_elementwise: a list of elementwise steps on float32 tensors of one shape, read from
// its attributes. Operands are numbered: first the op's inputs, then the results of the steps. If the op of a step
// broadcasts its second operand, that tensor may be smaller.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"
#include "ir/op.h"
#include "opdef/fused_ops.h"

namespace anabranch::math {

enum class StepKind {
  kAlike = 0,      // all operands have the shape of the result
  kJoint = 1,      // operands 0 and 1 are broadcast at `axis`; the result has their joint shape
  kJointGrad = 2,  // gradient of such an op with respect to operand 0 or 1, from the gradient that is operand 2
};

struct TileStep {
  StepKind kind;
  int axis;
  int like;  // operand that determines the shape of the result (unless kJoint)
  int lod;   // operand whose LoD it takes; -1: none
  std::span<const int> args;
  // Whether this operand may be smaller than the result.
  bool may_spread(size_t arg) const { return arg == 1 && like == 0 && kind != StepKind::kAlike; }
};

class TileProgram {
 public:
  TileProgram(const ir::Op& op, int inputs);  // InvalidArgument for attributes that are not a program

  int inputs() const { return inputs_; }
  bool has_base() const { return !op_.input("Base").empty(); }
  const std::vector<TileStep>& steps() const { return steps_; }
  const std::vector<int32_t>& outs() const { return op_.attr<std::vector<int32_t>>("outs"); }  // steps, by output
  // Step i as the op that it replaces, with operand k named "k".
  ir::OpRef op(int step) const;
  const std::string& result(int step) const { return op_.attr<std::vector<std::string>>("results")[step]; }

 private:
  const ir::Op& op_;
  int inputs_;
  std::vector<int> args_;
  std::vector<TileStep> steps_;
};

// Shapes of all operands from those of the inputs; ShapeMismatch if they do not match. `lods` receives, for each
// operand, the input whose LoD it has, or -1.
void infer_shapes(const TileProgram& program, std::vector<Shape>* shapes, std::vector<int>* lods);

// A tensor broadcast to a larger one as a whole: element i of the larger one is paired with element i / repeat %
// period.
struct Spread {
  int64_t repeat = 1, period = 0;  // period 0: not possible
};
Spread spread_of(const Shape& whole, const Shape& part, int axis);

}  // namespace anabranch::math
