// A chain of elementwise ops as one, made by the pass fuse_elementwise: all of it is done to a piece of the tensors
// while that is in the cache, on devices to an element in one launch. The same bits as the ops by themselves, whose
// loops and functions it calls.
#include <memory>

#include "ops/declare/declare.h"
#include "ops/math/element_steps.h"
#include "ops/math/step_by_step.h"
#include "ops/math/tiles.h"

namespace anabranch::math::fused_elementwise_op {
namespace {

// Inputs stand in X, one of them may stand in Base behind these; results in Out, the last one in Result.
void infer(InferContext& c) {
  const auto inputs = static_cast<int>(c.ins.size());
  const TileProgram program(c.op(), inputs);
  std::vector<Shape> shapes;
  std::vector<int> lods;
  for (int i = 0; i < inputs; ++i) {
    shapes.push_back(c.ins[static_cast<size_t>(i)].shape);
    lods.push_back(i);
  }
  infer_shapes(program, &shapes, &lods);
  for (size_t k = 0; k < program.outs().size(); ++k) {
    const auto operand = static_cast<size_t>(inputs + program.outs()[k]);
    Meta& target = c.outs[k];
    target.kind = VarKind::kLoDTensor;
    target.shape = shapes[operand];
    target.dtype = c.ins[0].dtype;
    target.lod_level = 0;
    target.lod = nullptr;
    if (lods[operand] < 0) continue;
    const Meta& source = c.ins[static_cast<size_t>(lods[operand])];
    const bool fits =
        !source.lod || source.lod->empty() || (target.shape.rank() > 0 && source.lod->back().back() == target.shape[0]);
    if (!fits) continue;
    target.lod_level = source.lod_level;
    target.lod = source.lod;
  }
}

int count_inputs(const ir::Op& op) { return static_cast<int>(op.input("X").size() + op.input("Base").size()); }

// Few programs ever need it: made when one does.
class StepsApart {
 public:
  explicit StepsApart(const ir::Op& op) : op_(std::make_shared<const ir::Op>(op)) {}
  void run(const KernelContext& c, DType dtype, Place place) {
    if (!steps_) steps_ = std::make_shared<StepByStep>(TileProgram(*op_, count_inputs(*op_)), dtype, place);
    steps_->run(c);
  }

 private:
  std::shared_ptr<const ir::Op> op_;
  std::shared_ptr<StepByStep> steps_;
};

void check_types(const std::vector<std::string>& types) {
  for (const std::string& type : types) {
    AB_CHECK(find_op(type).tile() != nullptr, InvalidArgument, "types must work element by element, got {}", type);
  }
}

AB_OP(fused_elementwise)
    .doc("Out = results of elementwise steps on X; made by a pass from ops whose results nobody else reads.")
    .in_optional_list("X", "tensors of one type, one of them at least of the shape of the results")
    .in_optional("Base", "another one, of the shape of the results")
    .out_list("Out", "the results that are wanted, but for the last one")
    .out("Result", "the last one that is wanted")
    .may_share("Base", "Result")
    .attr<std::vector<int32_t>>("plan", {}, "kind, axis, form, number of operands and operands of each step")
    .attr<std::vector<int32_t>>("lods", {}, "the operand whose sequences each step's result carries; -1: none")
    .attr<std::vector<std::string>>("types", {}, "the op of each step: those that work element by element", check_types)
    .attr<std::vector<std::string>>("results", {}, "the output slot that each step computes")
    .attr<std::vector<std::string>>("slots", {}, "the input slot of each operand of each step")
    .attr<std::vector<int32_t>>("outs", {}, "the step of each output")
    .effects(kEngineOnly)
    .traits(kRowWise)
    .infer(infer)
    .no_grad("made when gradients are there already")
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      const TileProgram program(op.op(), count_inputs(op.op()));
      const bool is_short = program.steps().size() <= fused::kMaxSteps;
      const auto tiles = is_short ? std::make_shared<Tiles>(program) : nullptr;
      return [tiles, apart = StepsApart(op.op())](KernelContext& c) mutable {
        if (!tiles || !tiles->run(c)) apart.run(c, DType::kFloat32, Place());
      };
    })
    .device<float, float16, bfloat16>([](auto, const KernelArgs& op) -> Kernel {
      const DType dtype = op.dtype();
      const auto steps = std::make_shared<ElementSteps>(TileProgram(op.op(), count_inputs(op.op())), dtype);
      return [steps, dtype, apart = StepsApart(op.op())](KernelContext& c) mutable {
        const DeviceContext& queued = DeviceContext::of(c);
        if (!steps->run(queued)) apart.run(c, dtype, Place::cuda(queued.device()));
      };
    });

}  // namespace
}  // namespace anabranch::math::fused_elementwise_op
