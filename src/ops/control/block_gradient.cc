#include "ops/control/block_gradient.h"

#include <algorithm>
#include <memory>

#include "base/flags.h"
#include "opdef/whole_arrays.h"
#include "ops/control/add_up.h"
#include "ops/control/iterations.h"

namespace anabranch::control {
namespace {

// A gradient held by a variable of the gradient block. `shaped`: the variable whose shape zeros take.
struct Inner {
  int local = -1, shaped = -1;
};

// A variable that the forward block writes: an iteration receives the gradient of the value it left and returns the
// gradient of the value it found.
struct Carried : Inner {
  int given = -1;       // its index among the gradients of outputs
  bool ends = false;    // the iteration overwrites the value it finds
  int input = -1;       // receives the gradient of the value from before the loop
  bool before = false;  // writes to Before@GRAD instead of an input's gradient
};

// A variable that every iteration reads.
struct Summed : Inner {
  int input = -1;
  int before = -1;                         // its index among the sums that iterations add to
  std::shared_ptr<SumOverIterations> sum;  // null: a variable of the block holds the sum, and iterations add to it
  bool array = false;
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Gradient {
 public:
  Gradient(const KernelArgs& op, const GradientSlots& slots) : block_(op.block("sub_block")) {
    dout_ = op.in(ir::grad_name(slots.out));
    dinput_ = op.out(ir::grad_name(slots.in));
    before_ = op.out("Before@GRAD");
    sums_ = op.in(kSumSlot);
    find_carried(op.op(), slots);
    find_summed(op.op(), slots);
  }

  void run(KernelContext& c) {
    const int iterations = block_->iterations();
    block_->begin();
    block_->enter();
    for (const Carried& v : carried_) take(c, v, iterations);
    for (const Summed& v : summed_) begin(c, v);
    for (int iteration = iterations - 1; iteration >= 0; --iteration) {
      if (iteration < iterations - 1) end_gradients(iteration);
      run_iteration(c, iteration);
    }
    for (const Carried& v : carried_) give(c, v, iterations);
    for (const Summed& v : summed_) give(c, v);
  }

 private:
  using Names = std::vector<std::string>;

  Inner inner_of(const std::string& name) { return {block_->find(ir::grad_name(name)), block_->find_shaped(name)}; }

  void find_carried(const ir::Op& op, const GradientSlots& slots) {
    const Names &ins = op.input(slots.in), &outs = op.input(slots.out), &douts = op.input(ir::grad_name(slots.out));
    const auto ends = op.has_attr(kEndingGradients) ? op.attr<Names>(kEndingGradients) : Names{};
    for (size_t i = 0; i < outs.size(); ++i) {
      Carried v;
      static_cast<Inner&>(v) = inner_of(outs[i]);
      const bool given = i < douts.size() && douts[i] != ir::kEmptyVar;
      AB_CHECK(v.local >= 0 || !given || !slots.repeats, Unsupported,
               "the gradient of this loop was made and saved by PaddlePaddle Fluid, which stores gradients of loops in "
               "another form (without the variable {}): build the program and call minimize here, then load the saved "
               "parameters",
               ir::grad_name(outs[i]));
      if (v.local < 0) continue;
      v.given = given ? static_cast<int>(i) : -1;
      v.ends = contains(ends, outs[i]);
      const auto in = std::find(ins.begin(), ins.end(), outs[i]);
      v.before = in == ins.end();
      v.input = static_cast<int>(v.before ? i : static_cast<size_t>(in - ins.begin()));
      const bool array = block_->keeps_array(v.local);
      // Fluid 1.8.5 passes no gradient of a tensor from an iteration to the one before.
      if (slots.repeats && !array && v.shaped >= 0 && Flags::exact_fluid()) v.ends = true;
      carried_.push_back(v);
    }
  }

  void find_summed(const ir::Op& op, const GradientSlots& slots) {
    const Names &ins = op.input(slots.in), &outs = op.input(slots.out);
    const auto whole = op.has_attr(kWholeArrays) ? op.attr<Names>(kWholeArrays) : Names{};
    for (size_t i = 0; i < ins.size(); ++i) {
      Summed v;
      static_cast<Inner&>(v) = inner_of(ins[i]);
      const bool carried = contains(outs, ins[i]);
      if (v.local < 0 || (carried && has_carried(v.local))) continue;
      v.input = static_cast<int>(i);
      v.array = contains(whole, ins[i]);
      v.before = sum_before(op, ins[i]);
      const bool inside = sums_inside(op, ins[i]) || (!v.array && block_->keeps_array(v.local));
      if (!inside) v.sum = std::make_shared<SumOverIterations>();
      summed_.push_back(v);
    }
  }

  bool has_carried(int local) const {
    return std::any_of(carried_.begin(), carried_.end(), [&](const Carried& v) { return v.local == local; });
  }

  void take(KernelContext& c, const Carried& v, int iterations) {
    Value& local = block_->value(v.local);
    if (v.given >= 0 && c.value(dout_, v.given).initialized()) {
      local.copy_from(c.value(dout_, v.given));
    } else if (v.shaped >= 0) {
      block_->make_zeros(v.shaped, iterations - 1, local);
    }
  }

  void begin(KernelContext& c, const Summed& v) {
    const Value* before = v.before < 0 ? nullptr : &c.value(sums_, v.before);
    Value* to = c.needs(dinput_, v.input) ? &c.value(dinput_, v.input) : nullptr;
    if (!v.sum) {
      begin_inside(before, block_->keeps_array(v.local), to, block_->value(v.local));
    } else if (to) {
      v.sum->begin(before, *to);
    }
  }

  void end_gradients(int iteration) {
    for (const Carried& v : carried_) {
      if (v.ends) block_->make_zeros(v.shaped, iteration, block_->value(v.local));
    }
  }

  void run_iteration(KernelContext& c, int iteration) {
    check_interrupt();
    const IterationContext inside(c, iteration);
    try {
      block_->run_back(inside, iteration);
      for (const Summed& v : summed_) {
        if (v.sum && c.needs(dinput_, v.input)) {
          v.sum->add(c, block_->value(v.local), c.value(dinput_, v.input));
        }
      }
    } catch (Error& e) {
      if (block_->iterations() > 1) note_iteration(e, iteration);
      throw;
    }
  }

  void give(KernelContext& c, const Carried& v, int iterations) {
    const Out to = v.before ? before_ : dinput_;
    if (!c.needs(to, v.input)) return;
    if (iterations > 0 && v.ends) {
      block_->make_zeros(v.shaped, -1, c.value(to, v.input));
    } else {
      c.value(to, v.input).copy_from(block_->value(v.local));
    }
  }

  void give(KernelContext& c, const Summed& v) {
    if (!c.needs(dinput_, v.input)) return;
    Value& to = c.value(dinput_, v.input);
    const bool there = v.sum ? v.sum->finish(to) : give_inside(block_->value(v.local), to);
    if (there) return;
    if (v.array) {
      to.as<TensorArray>().clear();
    } else if (v.shaped >= 0) {
      block_->make_zeros(v.shaped, -1, to);
    }
  }

  std::shared_ptr<BlockRunner> block_;
  In dout_, sums_;
  Out dinput_, before_;
  std::vector<Carried> carried_;
  std::vector<Summed> summed_;
};

}  // namespace

void declare_block_gradient(OpDef& def, const GradientSlots& slots) {
  const std::string in = slots.in, out = slots.out;
  def.in_optional_list(in, "as in the forward op")
      .takes(in, Holds::kAnything)
      .in_optional_list(out,
                        "variables that the block wrote, as in Fluid's files; the gradient block names those it needs")
      .takes(out, Holds::kAnything)
      .in_optional_list(ir::grad_name(out), "gradients of the variables that the block wrote; @EMPTY@ if there is none")
      .takes(ir::grad_name(out), Holds::kAnything)
      .with(sum_slot)
      .out_optional_list(ir::grad_name(in), "gradients of the variables that the block read")
      .out_optional_list("Before@GRAD", "gradients of the earlier values of outputs that are not inputs")
      .required_attr("sub_block", AttrType::kBlock, "the gradient block")
      .effects(kDynamic | kRunsBlock | kMaybeUnset)
      .traits(kOnlyComputes)
      .infer([in, out](InferContext& c) {
        if (c.runtime()) return;
        const std::string din = ir::grad_name(in);
        for (int i = 0; i < c.n_out(din) && i < c.n_in(in); ++i) c.out(din, i) = c.in(in, i);
        for (int i = 0; i < c.n_out("Before@GRAD") && i < c.n_in(out); ++i) c.out("Before@GRAD", i) = c.in(out, i);
      })
      .no_grad("second derivatives through control flow are not supported")
      .cpu_any([slots](const KernelArgs& op) -> Kernel {
        return [gradient = std::make_shared<Gradient>(op, slots)](KernelContext& c) { gradient->run(c); };
      });
}

void fill_block_gradient(GradContext& g, GradOp op, const GradientSlots& slots) {
  op.in(slots.in, g.in(slots.in))
      .in(slots.out, g.out(slots.out))
      .in(ir::grad_name(slots.out), g.dout(slots.out))
      .out(ir::grad_name(slots.in), g.din(slots.in))
      .out("Before@GRAD", g.dbefore(slots.out));
}

}  // namespace anabranch::control
