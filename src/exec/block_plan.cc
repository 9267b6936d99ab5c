#include "exec/block_plan.h"

#include <unordered_map>

#include "exec/node_shape.h"
#include "opdef/append_op.h"

namespace anabranch {

class BlockPlan final : public BlockRunner {
 public:
  BlockPlan(BlockSet& set, int idx) : set_(set), block_(set.program_.block(idx)) {
    // Variables first: a gradient block made later looks its forward block's variables up here.
    for (const auto& v : block_.vars()) values_.try_emplace(v->name, std::make_unique<Value>());
  }

  Value* find(const std::string& name) override {
    auto it = values_.find(name);
    return it == values_.end() ? nullptr : it->second.get();
  }

  void run(const KernelContext& caller) override {
    if (!plan_) make_plan();
    for (int i = 0; i < plan_->size(); ++i) {
      Plan::Node& node = plan_->node(i);
      node.context.parallel = caller.parallel;
      node.context.step = caller.step;
      node.context.replica = caller.replica;
      try {
        node.shape(node.context, node.kernel);
        node.kernel(node.context);
      } catch (Error& e) {
        e.with_op(block_.ops()[i]->describe(i, block_.idx()));
        throw;
      }
    }
  }

 private:
  // This block, then what surrounds it; the block that this one is the gradient of comes before the parents.
  Value* resolve(int idx, const std::string& name, int depth = 0) {
    AB_CHECK(depth < 64, InvalidArgument, "blocks are nested deeper than 64 levels");
    if (idx <= 0) return set_.outer_(name);
    const ir::Block& block = set_.program_.block(idx);
    if (block.find_var(name)) return idx == block_.idx() ? find(name) : set_.runner(idx)->find(name);
    if (block.forward_block > 0 && set_.program_.block(block.forward_block).find_var(name)) {
      return set_.runner(block.forward_block)->find(name);
    }
    return resolve(block.parent(), name, depth + 1);
  }

  void make_plan() {
    std::vector<NodeSpec> specs;
    for (const auto& made : block_.ops()) {
      const ir::OpRef op = checked_copy(*made);
      NodeSpec spec;
      const auto values = [&](const std::vector<ir::Slot>& slots, std::vector<Value*>* out) {
        for (const auto& s : slots) {
          for (const auto& a : s.args) {
            Value* v = a == ir::kEmptyVar ? nullptr : resolve(block_.idx(), a);
            AB_CHECK(v || a == ir::kEmptyVar, NotFound,
                     "variable {} of op {} in block {} is in no block that can be seen", a, op->type, block_.idx());
            out->push_back(v);
          }
        }
      };
      values(op->inputs, &spec.ins);
      values(op->outputs, &spec.outs);
      spec.shape = make_shape_fn(
          {&find_op(op->type), op, set_.seed_, set_.factory(), (block_.idx() << 20) + static_cast<int>(specs.size())});
      specs.push_back(std::move(spec));
    }
    plan_ = std::make_unique<Plan>(std::move(specs));
  }

  BlockSet& set_;
  const ir::Block& block_;
  std::unordered_map<std::string, std::unique_ptr<Value>> values_;
  std::unique_ptr<Plan> plan_;
};

BlockSet::BlockSet(const ir::Program& program, Outer outer, uint64_t seed)
    : program_(program), outer_(std::move(outer)), seed_(seed) {}

std::shared_ptr<BlockRunner> BlockSet::runner(int block) {
  auto& made = made_[block];
  if (!made) made = std::make_shared<BlockPlan>(*this, block);
  return made;
}

BlockFactory BlockSet::factory() {
  return [this](int block) { return runner(block); };
}

}  // namespace anabranch
