// Runs a block for each step of tensors [steps, ...]; memories carry values from one step to the next.
#include <algorithm>
#include <cstring>
#include <memory>

#include "opdef/op_def.h"
#include "opdef/whole_arrays.h"
#include "ops/control/add_up.h"
#include "ops/control/iterations.h"
#include "ops/declare/declare.h"
#include "ops/kernels/add_tensor.h"

namespace anabranch::control::recurrent_op {
namespace {

using Names = std::vector<std::string>;

Shape step_shape(const Tensor& t) { return t.shape().slice(1, t.shape().rank()); }

char* step_at(Tensor& t, int64_t step) {
  return static_cast<char*>(t.mutable_raw()) + t.bytes() / static_cast<size_t>(t.rows()) * static_cast<size_t>(step);
}

void copy_step(const Tensor& from, int64_t step, Tensor& to) {
  to.resize(step_shape(from), from.dtype());
  to.set_lod(LoDRef());
  if (to.bytes()) std::memcpy(to.mutable_raw(), step_at(const_cast<Tensor&>(from), step), to.bytes());
}

void put_step(const Tensor& from, Tensor& to, int64_t step, int64_t steps, const char* what) {
  Shape all(std::vector<int64_t>(static_cast<size_t>(from.shape().rank()) + 1));
  all.set(0, steps);
  for (int i = 0; i < from.shape().rank(); ++i) all.set(i + 1, from.shape()[i]);
  if (!(to.shape() == all && to.dtype() == from.dtype() && to.initialized())) {
    AB_CHECK(!to.initialized() || to.shape().rank() == 0, ShapeMismatch,
             "{} must have the same shape in every step, got {} after steps of {}", what, from.shape().str(),
             to.shape().str());
    to.resize(all, from.dtype());
    to.set_lod(LoDRef());
  }
  if (from.bytes()) std::memcpy(step_at(to, step), from.raw(), from.bytes());
}

int variable_of(BlockRunner& block, const std::string& name) {
  const int var = block.find(name);
  AB_CHECK(var >= 0, InvalidArgument, "the block must have a variable {}", name);
  return var;
}

std::vector<int> variables_of(BlockRunner& block, const Names& names) {
  std::vector<int> found;
  for (const auto& name : names) found.push_back(variable_of(block, name));
  return found;
}

int64_t steps_of(const KernelContext& c, In inputs) {
  int64_t steps = -1;
  for (int i = 0; i < inputs.count; ++i) {
    const Tensor& x = c.at(inputs, i);
    AB_CHECK(x.shape().rank() > 1, ShapeMismatch, "inputs[{}] must have an axis of steps before others, got {}", i,
             x.shape().str());
    AB_CHECK(steps < 0 || steps == x.rows(), ShapeMismatch, "inputs[{}] must have {} steps, as the first one, got {}",
             i, steps, x.rows());
    steps = x.rows();
  }
  AB_CHECK(steps > 0, InvalidArgument, "inputs must have at least one step");
  return steps;
}

void check_memories(const ir::Op& op) {
  const auto &memories = op.attr<Names>("ex_states"), &made_by = op.attr<Names>("states");
  const size_t begun = op.input("initial_states").size();
  AB_CHECK(memories.size() == made_by.size() && memories.size() == begun, InvalidArgument,
           "ex_states, states and initial_states must have the same length, got {}, {} and {}", memories.size(),
           made_by.size(), begun);
}

class Recurrent {
 public:
  explicit Recurrent(const KernelArgs& op) : block_(op.block("sub_block")), reverse_(op.attr<bool>("reverse")) {
    check_memories(op.op());
    inputs_ = op.in("inputs");
    begun_by_ = op.in("initial_states");
    outputs_ = op.out("outputs");
    x_ = variables_of(*block_, op.op().input("inputs"));
    y_ = variables_of(*block_, op.op().output("outputs"));
    memories_ = variables_of(*block_, op.attr<Names>("ex_states"));
    made_by_ = variables_of(*block_, op.attr<Names>("states"));
  }

  void run(KernelContext& c) {
    const int64_t steps = steps_of(c, inputs_);
    block_->begin();
    for (int i = 0; i < outputs_.count; ++i) c.value(outputs_, i).clear();
    for (int64_t iteration = 0; iteration < steps; ++iteration) {
      try {
        run_step(c, iteration, reverse_ ? steps - 1 - iteration : iteration, steps);
      } catch (Error& e) {
        note_iteration(e, iteration);
        throw;
      }
    }
  }

 private:
  void run_step(KernelContext& c, int64_t iteration, int64_t step, int64_t steps) {
    before_.clear();
    for (const int made : made_by_) before_.push_back(iteration > 0 ? &block_->value(made) : nullptr);
    block_->enter();
    for (size_t m = 0; m < memories_.size(); ++m) {
      const Value& from = iteration > 0 ? *before_[m] : c.value(begun_by_, static_cast<int>(m));
      block_->value(memories_[m]).copy_from(from);
    }
    for (size_t i = 0; i < x_.size(); ++i) {
      copy_step(c.at(inputs_, static_cast<int>(i)), step, block_->value(x_[i]).as<Tensor>());
    }
    check_interrupt();
    block_->run(IterationContext(c, iteration));
    for (size_t i = 0; i < y_.size(); ++i) {
      const int at = static_cast<int>(i);
      put_step(block_->value(y_[i]).tensor(), c.value(outputs_, at).as<Tensor>(), step, steps, "outputs");
    }
  }

  std::shared_ptr<BlockRunner> block_;
  const bool reverse_;
  In inputs_, begun_by_;
  Out outputs_;
  std::vector<int> x_, y_, memories_, made_by_;
  std::vector<Value*> before_;  // outputs of the previous iteration
};

// Iterations in reverse: the gradient of a value that a step leaves to the next is the gradient of the next step's
// memory.
class RecurrentGradient {
 public:
  explicit RecurrentGradient(const KernelArgs& op) : block_(op.block("sub_block")), reverse_(op.attr<bool>("reverse")) {
    check_memories(op.op());
    inputs_ = op.in("inputs");
    begun_by_ = op.in("initial_states");
    douts_ = op.in("outputs@GRAD");
    dx_ = op.out("inputs@GRAD");
    dbegun_ = op.out("initial_states@GRAD");
    dparameters_ = op.out("parameters@GRAD");
    before_ = op.in(kSumSlot);
    const auto gradients = [&](const Names& names) {
      std::vector<int> found;
      for (const auto& name : names) found.push_back(block_->find(ir::grad_name(name)));
      return found;
    };
    x_ = gradients(op.op().input("inputs"));
    y_ = gradients(op.op().input("outputs"));
    given_.assign(y_.size(), 0);
    const auto& douts = op.op().input("outputs@GRAD");
    for (size_t i = 0; i < y_.size() && i < douts.size(); ++i) given_[i] = douts[i] != ir::kEmptyVar;
    parameters_ = gradients(op.op().input("parameters"));
    memories_ = gradients(op.attr<Names>("ex_states"));
    made_by_ = gradients(op.attr<Names>("states"));
    find_sums(op.op());
  }

  void run(KernelContext& c) {
    const int iterations = block_->iterations();
    const int64_t steps = steps_of(c, inputs_);
    AB_CHECK(iterations == steps, InvalidArgument, "inputs must have the {} steps of the forward op, got {}",
             iterations, steps);
    block_->begin();
    block_->enter();
    for (size_t p = 0; p < parameters_.size(); ++p) begin_parameter(c, p);
    for (int i = 0; i < dx_.count; ++i) {
      if (c.needs(dx_, i)) c.value(dx_, i).clear();
    }
    for (int iteration = iterations - 1; iteration >= 0; --iteration) {
      try {
        run_step(c, iteration, reverse_ ? steps - 1 - iteration : iteration, steps);
      } catch (Error& e) {
        note_iteration(e, iteration);
        throw;
      }
    }
    finish(c);
  }

 private:
  void run_step(KernelContext& c, int iteration, int64_t step, int64_t steps) {
    block_->enter();
    const bool last = iteration == static_cast<int>(steps) - 1;
    for (size_t m = 0; m < memories_.size(); ++m) give_memory(c, m, last);
    for (size_t i = 0; i < y_.size(); ++i) give_output(c, i, step);
    check_interrupt();
    block_->run_back(IterationContext(c, iteration), iteration);
    for (size_t i = 0; i < x_.size(); ++i) {
      const int at = static_cast<int>(i);
      if (!c.needs(dx_, at) || x_[i] < 0) continue;
      put_step(block_->value(x_[i]).tensor(), c.value(dx_, at).as<Tensor>(), step, steps, "gradients of inputs");
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const int at = static_cast<int>(p);
      if (parameters_[p] >= 0 && !inside_[p] && c.needs(dparameters_, at)) {
        sums_[p].add(c, block_->value(parameters_[p]), c.value(dparameters_, at));
      }
    }
  }

  // Steps add to the elements of an array and pass it along.
  void find_sums(const ir::Op& op) {
    const auto& names = op.input("parameters");
    const auto whole = op.has_attr(kWholeArrays) ? op.attr<Names>(kWholeArrays) : Names{};
    sums_.resize(names.size());
    for (size_t p = 0; p < names.size(); ++p) {
      const bool whole_one = std::find(whole.begin(), whole.end(), names[p]) != whole.end();
      const bool array = parameters_[p] >= 0 && !whole_one && block_->keeps_array(parameters_[p]);
      inside_.push_back(array || sums_inside(op, names[p]));
      sum_before_.push_back(sum_before(op, names[p]));
    }
  }

  void begin_parameter(KernelContext& c, size_t p) {
    const int at = static_cast<int>(p);
    if (parameters_[p] < 0) return;
    const Value* before = sum_before_[p] < 0 ? nullptr : &c.value(before_, sum_before_[p]);
    Value* to = c.needs(dparameters_, at) ? &c.value(dparameters_, at) : nullptr;
    if (inside_[p]) {
      begin_inside(before, block_->keeps_array(parameters_[p]), to, block_->value(parameters_[p]));
    } else if (to) {
      sums_[p].begin(before, *to);
    }
  }

  void give_memory(KernelContext& c, size_t m, bool last) {
    if (made_by_[m] < 0) return;
    Value& to = block_->value(made_by_[m]);
    if (!last && memories_[m] >= 0) return to.copy_from(block_->value(memories_[m]));
    const Tensor& like = c.at(begun_by_, static_cast<int>(m));
    Tensor& zeros = to.as<Tensor>();
    zeros.resize(like.shape(), like.dtype());
    std::memset(zeros.mutable_raw(), 0, zeros.bytes());
  }

  void give_output(KernelContext& c, size_t i, int64_t step) {
    if (y_[i] < 0 || !given_[i]) return;
    const Tensor& all = c.at(douts_, static_cast<int>(i));
    Tensor& to = block_->value(y_[i]).as<Tensor>();
    if (std::find(made_by_.begin(), made_by_.end(), y_[i]) == made_by_.end()) return copy_step(all, step, to);
    copy_step(all, step, part_);  // a memory that is also an output
    add_tensor(c, part_, to);
  }

  void finish(KernelContext& c) {
    for (size_t m = 0; m < memories_.size(); ++m) {
      const int at = static_cast<int>(m);
      if (c.needs(dbegun_, at) && memories_[m] >= 0) c.value(dbegun_, at).copy_from(block_->value(memories_[m]));
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const int at = static_cast<int>(p);
      if (parameters_[p] < 0 || !c.needs(dparameters_, at)) continue;
      if (inside_[p]) {
        give_inside(block_->value(parameters_[p]), c.value(dparameters_, at));
      } else {
        sums_[p].finish(c.value(dparameters_, at));
      }
    }
  }

  std::shared_ptr<BlockRunner> block_;
  const bool reverse_;
  In inputs_, begun_by_, douts_, before_;
  Out dx_, dbegun_, dparameters_;
  std::vector<int> x_, y_, parameters_, memories_, made_by_;  // gradients in the block, -1 if there is none
  std::vector<char> given_, inside_;  // requested gradients of outputs; variables of the block that hold a sum
  std::vector<int> sum_before_;
  std::vector<SumOverIterations> sums_;
  Tensor part_;
};

void memories(OpDef& def) {
  def.attr<bool>("has_states", false, "the block has memories")
      .attr<Names>("ex_states", {}, "memories: variables of the block with values of the previous step")
      .attr<Names>("states", {}, "variables of the block that become the memories of the next step")
      .attr<bool>("reverse", false, "computes the last step first")
      .attr<bool>("is_train", true, "ignored: variables are kept if a gradient needs them")
      .attr<Names>("skip_eager_deletion_vars", {}, "ignored: values of a block stay in it");
}

AB_OP(recurrent)
    .doc(
        "Runs sub_block for each step along the first axis of inputs; outputs hold the values of its variables of the "
        "same names after each step.")
    .in_list("inputs", "[steps, ...]; the block sees one step of each by the same name")
    .in_optional_list("initial_states", "values of the memories in the first step")
    .in_optional_list("parameters", "other outer variables that the block reads")
    .takes("parameters", Holds::kAnything)
    .out_list("outputs", "[steps, ...]")
    .out_optional("step_scopes", "orders the gradient after this op")
    .required_attr("sub_block", AttrType::kBlock, "the block")
    .with(memories)
    .effects(kDynamic | kRunsBlock | kMaybeUnset | kRepeats)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.out("step_scopes").kind = VarKind::kStepScopes; })
    .grad([](GradContext& g) {
      g.op("recurrent_grad")
          .in("inputs", g.in("inputs"))
          .in("initial_states", g.in("initial_states"))
          .in("parameters", g.in("parameters"))
          .in("outputs", g.out("outputs"))
          .in("step_scopes", g.out("step_scopes"))
          .in("outputs@GRAD", g.dout("outputs"))
          .out("inputs@GRAD", g.din("inputs"))
          .out("initial_states@GRAD", g.din("initial_states"))
          .out("parameters@GRAD", g.din("parameters"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const Out scopes = op.out("step_scopes");
      return [scopes, steps = std::make_shared<Recurrent>(op)](KernelContext& c) {
        if (c.needs(scopes)) c.value(scopes).as<std::shared_ptr<void>>();
        steps->run(c);
      };
    });

AB_OP(recurrent_grad)
    .doc("Runs the gradient block once for each step, the last one first.")
    .in_list("inputs", "as in the forward op")
    .in_optional_list("initial_states", "as in the forward op")
    .in_optional_list("parameters", "as in the forward op")
    .takes("parameters", Holds::kAnything)
    .in_optional_list("outputs", "of the forward op")
    .takes("outputs", Holds::kAnything)
    .in_optional("step_scopes", "orders this op after the forward op")
    .takes("step_scopes", Holds::kAnything)
    .in_optional_list("outputs@GRAD", "gradients of the outputs; @EMPTY@ if there is none")
    .with(sum_slot)
    .out_optional_list("inputs@GRAD", "like inputs")
    .out_optional_list("initial_states@GRAD", "like initial_states")
    .out_optional_list("parameters@GRAD", "like parameters, summed over the steps")
    .required_attr("sub_block", AttrType::kBlock, "the gradient block")
    .with(memories)
    .effects(kDynamic | kRunsBlock | kMaybeUnset | kRepeats)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      if (c.runtime()) return;
      for (const char* slot : {"inputs", "initial_states", "parameters"}) {
        const std::string gradient = ir::grad_name(slot);
        for (int i = 0; i < c.n_out(gradient) && i < c.n_in(slot); ++i) c.out(gradient, i) = c.in(slot, i);
      }
    })
    .no_grad("second derivatives through control flow are not supported")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [gradient = std::make_shared<RecurrentGradient>(op)](KernelContext& c) { gradient->run(c); };
    });

AB_OP(rnn_memory_helper)
    .doc("Out = a copy of X, which a step passes to the next.")
    .in("X", "[...] any")
    .out("Out", "like X")
    .attr<int32_t>("dtype", 5, "ignored: the dtype is that of X")
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .grad_reads({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        if (c[out].bytes()) std::memcpy(c[out].mutable_raw(), c[x].raw(), c[x].bytes());
      };
    });

AB_GRAD(rnn_memory_helper)
    .doc("X@GRAD = Out@GRAD.")
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.same_as("X@GRAD", "X"); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [from = op.in("Out@GRAD"), out = op.out("X@GRAD")](KernelContext& c) {
        AB_CHECK(c[from].bytes() == c[out].bytes(), ShapeMismatch, "Out@GRAD must be {}, got {}", c[out].shape().str(),
                 c[from].shape().str());
        if (c[out].bytes()) std::memcpy(c[out].mutable_raw(), c[from].raw(), c[from].bytes());
      };
    });

}  // namespace
}  // namespace anabranch::control::recurrent_op
