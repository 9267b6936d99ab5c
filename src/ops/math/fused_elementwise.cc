// A chain of elementwise ops as one, made by the pass fuse_elementwise: all of it is done to a piece of the tensors
// while that is in the cache. The same bits as the ops by themselves, whose loops it calls.
#include <algorithm>
#include <memory>

#include "opdef/runtime.h"
#include "ops/declare/declare.h"
#include "ops/math/tiles.h"

namespace anabranch::math {
namespace {

// Steps one after another, on whole tensors: for shapes that tiles do not fit.
class StepByStep {
 public:
  explicit StepByStep(const TileProgram& program)
      : inputs_(program.inputs()), outs_(program.outs()), results_(program.steps().size()) {
    for (size_t i = 0; i < program.steps().size(); ++i) {
      const ir::OpRef op = program.op(static_cast<int>(i));
      const OpDef& def = find_op(op->type);
      const auto& args = program.steps()[i].args;
      steps_.push_back({RuntimeShapes(def, op),
                        def.kernel(DType::kFloat32)(KernelArgs(def, *op, DType::kFloat32, {})),
                        {args.begin(), args.end()}});
    }
  }

  void run(const KernelContext& outer) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      Value* ins[fused::kMaxArgs];
      for (size_t k = 0; k < steps_[i].args.size(); ++k) {
        const int a = steps_[i].args[k];
        ins[k] = a < inputs_ ? outer.ins[a] : &results_[static_cast<size_t>(a - inputs_)];
      }
      Value* out = &results_[i];
      KernelContext c = outer;
      c.ins = ins;
      c.outs = &out;
      steps_[i].shapes.refresh(ins, &out);
      steps_[i].kernel(c);
    }
    for (size_t k = 0; k < outs_.size(); ++k) {
      outer.outs[k]->as<Tensor>().copy_from(results_[static_cast<size_t>(outs_[k])].tensor());
    }
  }

 private:
  struct Step {
    RuntimeShapes shapes;
    Kernel kernel;
    std::vector<int> args;
  };
  int inputs_;
  std::vector<int32_t> outs_;
  std::vector<Value> results_;
  std::vector<Step> steps_;
};

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
    target.dtype = DType::kFloat32;
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

void check_types(const std::vector<std::string>& types) {
  for (const std::string& type : types) {
    AB_CHECK(find_op(type).tile() != nullptr, InvalidArgument, "types must work element by element, got {}", type);
  }
}

AB_OP(fused_elementwise)
    .doc("Out = results of elementwise steps on X; made by a pass from ops whose results nobody else reads.")
    .in_optional_list("X", "float32 tensors, one of them at least of the shape of the results")
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
      const auto tiles = std::make_shared<Tiles>(program);
      // Few programs ever need it: made when one does.
      return [tiles, fused = std::make_shared<const ir::Op>(op.op()),
              steps = std::shared_ptr<StepByStep>()](KernelContext& c) mutable {
        if (tiles->run(c)) return;
        if (!steps) steps = std::make_shared<StepByStep>(TileProgram(*fused, count_inputs(*fused)));
        steps->run(c);
      };
    });

}  // namespace
}  // namespace anabranch::math
