#include "ops/math/tile_program.h"

#include <algorithm>

#include "ops/kernels/broadcast.h"

namespace anabranch::math {
namespace {

void demand(bool ok, const char* what) { AB_CHECK(ok, InvalidArgument, "{}", what); }

const Shape& alike(const TileStep& s, const std::vector<Shape>& shapes) {
  const Shape& like = shapes[s.args[s.like]];
  for (int a : s.args) {
    AB_CHECK(compatible(like, shapes[a]), ShapeMismatch, "operands of one step must have equal shapes, got {} and {}",
             like.str(), shapes[a].str());
  }
  return like;
}

}  // namespace

// The attribute "plan": kind, axis, like, number of operands, operands; for each step. "lods": an operand per step.
TileProgram::TileProgram(const ir::Op& op, int inputs) : op_(op), inputs_(inputs) {
  const auto& plan = op.attr<std::vector<int32_t>>("plan");
  const auto& types = op.attr<std::vector<std::string>>("types");
  demand(inputs <= fused::kMaxInputs && types.size() <= fused::kMaxStepsOnDevices, "at most 24 inputs and 512 steps");
  demand(op.attr<std::vector<std::string>>("results").size() == types.size(), "one result a step");
  const auto& lods = op.attr<std::vector<int32_t>>("lods");
  demand(lods.size() == types.size(), "one entry of lods per step");
  args_.assign(plan.begin(), plan.end());
  size_t at = 0, operands = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    demand(at + 4 <= args_.size(), "the plan ends in a step");
    const int count = args_[at + 3];
    demand(count >= 1 && count <= fused::kMaxArgs && at + 4 + static_cast<size_t>(count) <= args_.size(),
           "a step has 1 to 8 operands");
    demand(lods[i] >= -1 && lods[i] < count, "lods must name operands of the step");
    const TileStep step{static_cast<StepKind>(args_[at]), args_[at + 1], args_[at + 2], lods[i],
                        std::span<const int>(args_).subspan(at + 4, static_cast<size_t>(count))};
    demand(args_[at] >= 0 && args_[at] <= 2 && step.like >= 0 && step.like < count, "a step's kind and form");
    demand(count > args_[at], "an op that joins two tensors has them, and its gradient a third one");
    for (int a : step.args) demand(a >= 0 && a < inputs + static_cast<int>(i), "operands must come before their step");
    operands += static_cast<size_t>(count);
    steps_.push_back(step);
    at += 4 + static_cast<size_t>(count);
  }
  demand(!steps_.empty() && at == args_.size(), "one step per type");
  demand(op.attr<std::vector<std::string>>("slots").size() == operands, "a slot for each operand");
  demand(outs().size() == op.output("Out").size() + op.output("Result").size(), "a step for each output");
  for (int s : outs()) demand(s >= 0 && s < static_cast<int>(steps_.size()), "outputs are results of steps");
}

ir::OpRef TileProgram::op(int step) const {
  const auto& slots = op_.attr<std::vector<std::string>>("slots");
  size_t slot = 0;
  for (int i = 0; i < step; ++i) slot += steps_[static_cast<size_t>(i)].args.size();
  auto op = std::make_shared<ir::Op>();
  op->type = op_.attr<std::vector<std::string>>("types")[static_cast<size_t>(step)];
  op->made_at = op_.made_at;
  for (int a : steps_[static_cast<size_t>(step)].args) {
    if (op->inputs.empty() || op->inputs.back().name != slots[slot]) op->inputs.push_back({slots[slot], {}});
    op->inputs.back().args.push_back(std::to_string(a));
    ++slot;
  }
  op->outputs.push_back({result(step), {std::to_string(inputs_ + step)}});
  const std::string prefix = std::to_string(step) + ".";
  for (auto it = op_.attrs.lower_bound(prefix); it != op_.attrs.end() && it->first.starts_with(prefix); ++it) {
    op->attrs[it->first.substr(prefix.size())] = it->second;
  }
  return op;
}

void infer_shapes(const TileProgram& program, std::vector<Shape>* shapes, std::vector<int>* lods) {
  for (const TileStep& s : program.steps()) {
    const Shape like = s.kind == StepKind::kAlike ? alike(s, *shapes) : (*shapes)[s.args[s.like]];
    int lod = s.lod < 0 ? -1 : (*lods)[s.args[s.lod]];
    if (s.kind == StepKind::kAlike) {
      shapes->push_back(like);
    } else {
      const Shape &x = (*shapes)[s.args[0]], &y = (*shapes)[s.args[1]];
      const Shape joint = x == y ? x : broadcast_shape(x, y, s.axis);
      if (s.kind == StepKind::kJointGrad) {
        const Shape& dout = (*shapes)[s.args[2]];
        AB_CHECK(compatible(joint, dout), ShapeMismatch, "Out@GRAD must be {}, got {}", joint.str(), dout.str());
        shapes->push_back(like);
      } else {
        if (joint.rank() == 0 || x.rank() == 0 || joint[0] != x[0]) lod = -1;
        shapes->push_back(joint);
      }
    }
    lods->push_back(lod);
  }
}

Spread spread_of(const Shape& whole, const Shape& part, int axis) {
  if (part.rank() > whole.rank()) return {};
  const Shape own = laid(whole, part, axis).y;
  int begin = 0, end = own.rank();
  while (begin < end && own[begin] == 1) ++begin;
  while (end > begin && own[end - 1] == 1) --end;
  for (int i = begin; i < end; ++i) {
    if (own[i] != whole[i]) return {};
  }
  return {whole.numel(end, whole.rank()), std::max<int64_t>(1, own.numel(begin, end))};
}

}  // namespace anabranch::math
