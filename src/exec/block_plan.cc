#include "exec/block_plan.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "exec/later.h"
#include "exec/node_shape.h"
#include "opdef/append_op.h"

namespace anabranch {

class BlockPlan final : public BlockRunner {
 public:
  BlockPlan(BlockSet& set, int idx, const BlockSet::Outer& outer)
      : set_(set), block_(set.program_.block(idx)), outer_(outer) {
    // Variables first: a gradient block made later looks its forward block's variables up here.
    for (const auto& v : block_.vars()) values_.try_emplace(v->name, std::make_unique<Value>());
  }

  Value* find(const std::string& name) override {
    auto it = values_.find(name);
    return it == values_.end() ? nullptr : it->second.get();
  }

  void run(const KernelContext& caller) override {
    for (int i = 0; i < plan_->size(); ++i) {
      Plan::Node& node = plan_->node(i);
      node.context.parallel = caller.parallel;
      node.context.step = caller.step;
      node.context.replica = caller.replica;
      try {
        plan_->infer(i);
        run_to_end(*plan_, i);
        for (const auto& [made, place] : asides_[i]) place->copy_from(*made);
      } catch (Error& e) {
        e.in_op(block_.ops()[i]->type).with_op(block_.ops()[i]->describe(i, block_.idx()));
        throw;
      }
    }
  }

  void prepare() {
    std::vector<NodeSpec> specs;
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      try {
        specs.push_back(make_spec(*block_.ops()[i], static_cast<int>(i)));
      } catch (Error& e) {
        throw e.with_op(block_.ops()[i]->describe(static_cast<int>(i), block_.idx()));
      }
    }
    plan_ = std::make_unique<Plan>(std::move(specs));
  }

 private:
  // Made for an output that is an input as well, and copied into its place when the op has read the input.
  using Aside = std::pair<Value*, Value*>;

  // This block, then what surrounds it; the block that this one is the gradient of comes before the parents.
  Value* resolve(int idx, const std::string& name, int depth = 0) {
    AB_CHECK(depth < 64, InvalidArgument, "blocks are nested deeper than 64 levels");
    if (idx <= 0) return outer_(name);
    const ir::Block& block = set_.program_.block(idx);
    if (block.find_var(name)) return plan_of(idx).find(name);
    if (block.forward_block > 0 && set_.program_.block(block.forward_block).find_var(name)) {
      return plan_of(block.forward_block).find(name);
    }
    return resolve(block.parent(), name, depth + 1);
  }

  BlockPlan& plan_of(int idx) {
    if (idx == block_.idx()) return *this;
    set_.prepare(idx, outer_);
    return *set_.made_.at(idx);
  }

  NodeSpec make_spec(const ir::Op& made, int index) {
    const ir::OpRef op = checked_copy(made);
    const OpDef& def = find_op(op->type);
    for (int sub : op->sub_blocks()) set_.prepare(sub, outer_);
    NodeSpec spec;
    const auto values = [&](const std::vector<ir::Slot>& slots, std::vector<Value*>* out) {
      for (const auto& s : slots) {
        for (const auto& a : s.args) {
          Value* v = a == ir::kEmptyVar ? nullptr
                     : is_discarded(a)  ? &made_aside_.emplace_back()
                                        : resolve(block_.idx(), a);
          AB_CHECK(v || a == ir::kEmptyVar, NotFound,
                   "variable {} of op {} in block {} is in no block that can be seen", a, op->type, block_.idx());
          out->push_back(v);
        }
      }
    };
    values(op->inputs, &spec.ins);
    values(op->outputs, &spec.outs);
    asides_.push_back(set_aside(*op, def, spec));
    spec.later = def.has(kCompletesLater);
    spec.shape = make_shape_fn({&def, op, set_.seed_, set_.factory(), (block_.idx() << 20) + index});
    return spec;
  }

  std::vector<Aside> set_aside(const ir::Op& op, const OpDef& def, NodeSpec& spec) {
    std::vector<Aside> asides;
    size_t at = 0;
    for (const auto& out : op.outputs) {
      for (size_t i = 0; i < out.args.size(); ++i, ++at) {
        Value*& value = spec.outs[at];
        const bool reads_it = std::find(spec.ins.begin(), spec.ins.end(), value) != spec.ins.end();
        if (!value || !reads_it || def.has(kKeepsOutputs) || updates(op, def, out, i)) continue;
        asides.emplace_back(&made_aside_.emplace_back(), value);
        value = asides.back().first;
      }
    }
    return asides;
  }

  static bool updates(const ir::Op& op, const OpDef& def, const ir::Slot& out, size_t i) {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ir::Slot& in) {
      return i < in.args.size() && in.args[i] == out.args[i] && def.is_update(in.name, out.name);
    });
  }

  BlockSet& set_;
  const ir::Block& block_;
  const BlockSet::Outer outer_;
  std::unordered_map<std::string, std::unique_ptr<Value>> values_;
  std::deque<Value> made_aside_;
  std::vector<std::vector<Aside>> asides_;  // by op
  std::unique_ptr<Plan> plan_;
};

void BlockSet::prepare(int block, const Outer& outer) {
  auto [it, fresh] = made_.try_emplace(block);
  if (!fresh) return;
  it->second = std::make_shared<BlockPlan>(*this, block, outer);
  it->second->prepare();
}

std::shared_ptr<BlockRunner> BlockSet::runner(int block) const { return made_.at(block); }

BlockFactory BlockSet::factory() const {
  return [this](int block) { return runner(block); };
}

}  // namespace anabranch
