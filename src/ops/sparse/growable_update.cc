// Updates a growable table by an optimizer: only the rows and moments of the keys in a sparse gradient.
#include <memory>

#include "base/event_time.h"
#include "ops/optim/element_rules.h"
#include "ops/optim/update.h"
#include "sparse/growable_table.h"

namespace anabranch::sparse::growable_update_op {
namespace {

void infer(InferContext& c) {
  c.same_as("ParamOut", "Param");
  check_numel(c, "LearningRate", 1);
  AB_CHECK(c.in("Grad").kind == VarKind::kSelectedRows, Unsupported, "Grad must be SELECTED_ROWS, got a {}",
           var_kind_name(c.in("Grad").kind));
  const bool powers = row_rule(c.attr<std::string>("rule")) == RowRule::kAdam;
  for (const char* slot : {"Beta1Pow", "Beta2Pow"}) {
    AB_CHECK(c.has_in(slot) == powers, InvalidArgument, "{} must {}be given", slot, powers ? "" : "not ");
    if (!powers) continue;
    check_numel(c, slot, 1);
    c.same_as(std::string(slot) + "Out", slot);
  }
}

class Update {
 public:
  explicit Update(const KernelArgs& op)
      : name_(op.op().input("Param").at(0)),
        param_(op.in("Param")),
        grad_(op.in("Grad")),
        rate_(op.in("LearningRate")),
        pow1_(op.in("Beta1Pow")),
        pow2_(op.in("Beta2Pow")),
        pow1_out_(op.out("Beta1PowOut")),
        pow2_out_(op.out("Beta2PowOut")) {
    how_.rule = row_rule(op.attr<std::string>("rule"));
    how_.beta1 = op.attr<float>("beta1");
    how_.beta2 = op.attr<float>("beta2");
    how_.epsilon = op.attr<float>("epsilon");
    how_.mu = op.attr<float>("mu");
    how_.nesterov = op.attr<bool>("use_nesterov");
    how_.l1 = op.attr<float>("l1");
    how_.l2 = op.attr<float>("l2");
    how_.power = op.attr<float>("lr_power");
    how_.shrink = op.attr<float>("weight_decay");
    how_.l1_decay = op.attr<float>("l1_decay");
    how_.l2_decay = op.attr<float>("l2_decay");
    how_.makes_rows = op.attr<bool>("makes_rows");
  }

  void operator()(KernelContext& c) {
    const auto table = GrowableTable::of(c.value(param_));
    AB_CHECK(table != nullptr, NotFound, "variable {} must hold a growable table", name_);
    const SelectedRows& grad = c.value(grad_).rows();
    const auto n = static_cast<int64_t>(grad.rows.size());
    AB_CHECK(grad.value.numel() == n * table->options().width, ShapeMismatch,
             "Grad must have the row width of the table, got {} for {} keys and table {} of width {}",
             grad.value.shape().str(), n, name_, table->options().width);
    how_.rate = optim::scalar<float>(c[rate_]);
    float now1 = 0, now2 = 0;
    if (pow1_) {  // as in the op adam, the powers advance before a sparse step
      now1 = optim::scalar<float>(c[pow1_]) * how_.beta1;
      now2 = optim::scalar<float>(c[pow2_]) * how_.beta2;
      how_.rate = rules::corrected_rate(how_.rate, now1, now2);
    }
    if (table->options().timed) how_.time = event_time();
    table->update(grad.rows.data(), n, grad.value.data<float>(), how_, scratch_.get(), c.parallel);
    if (!pow1_) return;
    *c[pow1_out_].mutable_data<float>() = now1;
    *c[pow2_out_].mutable_data<float>() = now2;
  }

 private:
  std::string name_;
  In param_, grad_, rate_, pow1_, pow2_;
  Out pow1_out_, pow2_out_;
  RecordUpdate how_;
  std::shared_ptr<GrowableTable::Scratch> scratch_ = std::make_shared<GrowableTable::Scratch>();
};

AB_OP(growable_update)
    .doc(
        "Updates the rows of the keys in Grad by the formulas of the ops sgd, adagrad, adam with lazy_mode, momentum "
        "or ftrl, or by row_adagrad: m += mean(g^2), w -= LearningRate g / (sqrt(m) + epsilon) with one moment m for a "
        "row. Gradients of one key are summed in order, and keys without a row are skipped or get one first. Only "
        "these rows are regularized: w -= weight_decay w, then g += l2_decay w + l1_decay sign(w). Counts as one "
        "update for the age of rows.")
    .in("Param", "a growable table")
    .takes("Param", Holds::kAnything)
    .in("Grad", "SELECTED_ROWS: keys and their gradients")
    .takes("Grad", Holds::kTensorOrRows)
    .in("LearningRate", "[1] float32")
    .in_optional("Beta1Pow", "[1] float32: beta1 to the power of the step, for adam")
    .in_optional("Beta2Pow", "[1] float32: beta2 to the power of the step, for adam")
    .out("ParamOut", "Param, updated in place")
    .out_optional("Beta1PowOut", "Beta1Pow * beta1")
    .out_optional("Beta2PowOut", "Beta2Pow * beta2")
    .required_attr("rule", AttrType::kString,
                   "sgd, adagrad, adam, momentum, ftrl or row_adagrad; the table keeps the moments for it")
    .attr<float>("beta1", 0.9f, "decay of the first moment (adam)")
    .attr<float>("beta2", 0.999f, "decay of the second moment (adam)")
    .attr<float>("epsilon", 1.0e-8f, "keeps the quotient finite")
    .attr<float>("mu", 0.0f, "momentum coefficient (momentum)")
    .attr<bool>("use_nesterov", false, "uses Nesterov momentum (momentum)")
    .attr<float>("l1", 0.0f, "weight of the absolute values (ftrl)")
    .attr<float>("l2", 0.0f, "weight of the squares (ftrl)")
    .attr<float>("lr_power", -0.5f, "exponent of the learning rate, at most 0 (ftrl)")
    .attr<float>("weight_decay", 0.0f, "fraction of the rows that is subtracted before the update")
    .attr<float>("l1_decay", 0.0f, "factor of the signs of the rows in their gradient")
    .attr<float>("l2_decay", 0.0f, "factor of the rows in their gradient")
    .attr<std::string>("table_rules", "", "admission and removal of rows, as text, by which jobs are compared")
    .attr<bool>("makes_rows", false, "creates rows for keys without one, even if the table does not say so")
    .infer(infer)
    .no_grad(optim::kNoGrad)
    .cpu_any([](const KernelArgs& op) -> Kernel { return Update(op); });

}  // namespace
}  // namespace anabranch::sparse::growable_update_op
