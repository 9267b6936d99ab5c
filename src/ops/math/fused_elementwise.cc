// A chain of elementwise ops in one op, made by the pass fuse_elementwise: all steps run on a chunk of the tensors
// while it is in the cache; on devices, on an element in one launch. The same bits as the separate ops, whose loops and
// functions it calls.
#include <memory>

#include "ops/declare/declare.h"
#include "ops/math/element_steps.h"
#include "ops/math/step_by_step.h"
#include "ops/math/tiles.h"

namespace anabranch::math::fused_elementwise_op {
namespace {

// Inputs are in X, followed by an optional one in Base; results in Out, the last one in Result.
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

// Rarely needed, so created on first use.
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
    AB_CHECK(find_op(type).tile() != nullptr, InvalidArgument, "types must be elementwise ops, got {}", type);
  }
}

AB_OP(fused_elementwise)
    .doc("Out = the results of elementwise steps on X. A pass makes this op from ops whose results no other op reads.")
    .in_optional_list("X", "tensors of one dtype, at least one of them with the shape of the results")
    .in_optional("Base", "another input, with the shape of the results")
    .out_list("Out", "the requested results, except the last one")
    .out("Result", "the last requested result")
    .may_share("Base", "Result")
    .attr<std::vector<int32_t>>("plan", {}, "kind, axis, form, number of operands and operands of each step")
    .attr<std::vector<int32_t>>("lods", {}, "the operand whose LoD each step's result takes; -1: none")
    .attr<std::vector<std::string>>("types", {}, "the elementwise op of each step", check_types)
    .attr<std::vector<std::string>>("results", {}, "output slot that each step computes")
    .attr<std::vector<std::string>>("slots", {}, "input slot of each operand of each step")
    .attr<std::vector<int32_t>>("outs", {}, "step of each output")
    .effects(kEngineOnly)
    .traits(kRowWise)
    .infer(infer)
    .no_grad("inserted after the gradients")
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
      return [steps, dtype, apart = StepsApart(op.op())](const DeviceContext& c) mutable {
        if (!steps->run(c)) apart.run(c, dtype, Place::cuda(c.device()));
      };
    });

}  // namespace
}  // namespace anabranch::math::fused_elementwise_op
