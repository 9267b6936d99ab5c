#include "ops/declare/second_order.h"

#include <algorithm>
#include <memory>

#include "opdef/check_op.h"

namespace anabranch::second_order {
namespace {

const OpDef& forward_of(const GradContext& g) { return *find_op(g.forward().type).forward(); }

bool any_given(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const auto& n) { return n != ir::kEmptyVar; });
}

bool contains(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

// A name that is not used by the program or in `taken`.
std::string free_name(const GradContext& g, std::set<std::string>* taken, int* number) {
  const auto outs = g.forward().output_args();
  for (;; ++*number) {
    std::string name = fmt::format("{}@OF_GRAD@{}", outs.empty() ? g.forward().type : outs[0], *number);
    if (!g.block().find_var_recursive(name) && taken->insert(name).second) return name;
  }
}

// The gradient of a gradient; zeros of the shape of its variable if there is none.
std::vector<std::string> complete(GradContext& g, const std::string& slot, std::set<std::string>* taken) {
  std::vector<std::string> flows = g.dout(ir::grad_name(slot));
  const auto like = g.in(slot);
  flows.resize(std::max(flows.size(), like.size()), ir::kEmptyVar);
  const auto given = std::find_if(flows.begin(), flows.end(), [](const auto& n) { return n != ir::kEmptyVar; });
  const std::string other = given == flows.end() ? "" : *given;  // lists that are not read have one shape
  int number = 0;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (flows[i] != ir::kEmptyVar) continue;
    flows[i] = free_name(g, taken, &number);
    g.op("fill_zeros_like").bare().in("X", {i < like.size() ? like[i] : other}).out("Out", {flows[i]});
  }
  return flows;
}

// The forward op on the gradients of its inputs' gradients.
void forward_on_flow(GradContext& g) {
  const OpDef& forward = forward_of(g);
  const auto& to = forward.grad_reads().to;
  std::set<std::string> taken;
  std::map<std::string, std::vector<std::string>> flows;
  for (const auto& slot : to) {
    // skips an optional input that was not given
    if (!g.in(slot).empty() || any_given(g.dout(ir::grad_name(slot)))) flows[slot] = complete(g, slot, &taken);
  }
  GradOp op = g.op(forward.type());
  for (const SlotDef& slot : forward.inputs())
    op.in(slot.name, contains(to, slot.name) ? flows[slot.name] : g.in(slot.name));
  const std::string& out = forward.grad_reads().from.at(0);
  op.out(out, g.din(ir::grad_name(out)));
}

bool flows_at_all(const GradContext& g) {
  const auto& to = forward_of(g).grad_reads().to;
  return std::any_of(to.begin(), to.end(), [&](const auto& slot) { return any_given(g.dout(ir::grad_name(slot))); });
}

// The gradient op with other inputs, computing one of its outputs.
GradOp again(GradContext& g, const std::map<std::string, std::vector<std::string>>& others) {
  GradOp op = g.op(g.forward().type);
  for (const ir::Slot& slot : g.forward().inputs) {
    const auto other = others.find(slot.name);
    op.in(slot.name, other == others.end() ? slot.args : other->second);
  }
  return op;
}

}  // namespace

void linear(GradContext& g) {
  if (flows_at_all(g)) forward_on_flow(g);
}

void reshaped(GradContext& g) {
  const std::string from = ir::grad_name(forward_of(g).grad_reads().from.at(0));
  const auto flow = g.dout(ir::grad_name(forward_of(g).grad_reads().to.at(0)));
  if (!any_given(flow) || !g.needs_din(from)) return;
  const ir::VarRef like = g.block().find_var_recursive(g.in(from).at(0));
  std::vector<int32_t> extents;
  for (const int64_t e : like->shape) extents.push_back(static_cast<int32_t>(e));
  std::set<std::string> taken;
  int number = 0;
  GradOp shape = g.op("shape");
  const std::string made = free_name(g, &taken, &number);
  shape.bare().in("Input", {g.in(from).at(0)}).out("Out", {made});
  g.op("reshape").bare().in("X", flow).in("Shape", {made}).out("Out", g.din(from)).attr("shape", extents);
}

void diagonal(GradContext& g) {
  const OpDef& forward = forward_of(g);
  const std::string from = ir::grad_name(forward.grad_reads().from.at(0));
  const auto flow = g.dout(ir::grad_name(forward.grad_reads().to.at(0)));
  if (!any_given(flow)) return;
  again(g, {{from, flow}}).out(ir::grad_name(forward.grad_reads().to.at(0)), g.din(from));
}

Maker bilinear(const char* x, const char* y) {
  return [x = std::string(x), y = std::string(y)](GradContext& g) {
    const OpDef& forward = forward_of(g);
    const std::string dx = ir::grad_name(x), dy = ir::grad_name(y), out = forward.grad_reads().from.at(0);
    const auto product = [&](const std::vector<std::string>& a, const std::vector<std::string>& b) {
      if (!g.needs_din(ir::grad_name(out))) return;
      GradOp op = g.op(forward.type());
      op.in(x, a).in(y, b).out(out, g.din(ir::grad_name(out)));
    };
    for (const auto& slot : forward.grad_reads().to) {
      AB_CHECK(slot == x || slot == y || !any_given(g.dout(ir::grad_name(slot))), Unsupported,
               "{}: the second-order gradient of {} is not supported", g.forward().type, slot);
    }
    if (const auto flow = g.dout(dx); any_given(flow)) {
      product(flow, g.in(y));
      if (g.needs_din(y)) again(g, {{x, flow}}).out(dy, g.din(y));
    }
    if (const auto flow = g.dout(dy); any_given(flow)) {
      product(g.in(x), flow);
      if (g.needs_din(x)) again(g, {{y, flow}}).out(dx, g.din(x));
    }
  };
}

// ---- other ops instead of a gradient op

bool Ops::given(const std::string& slot) const { return any_given(g_.in(slot)); }
bool Ops::needed(const std::string& slot) const { return any_given(g_.dout(slot)); }

int Ops::rank(const std::string& variable) const { return g_.block().find_var_recursive(variable)->shape.rank(); }
int64_t Ops::extent(const std::string& variable, int axis) const {
  return g_.block().find_var_recursive(variable)->shape[axis];
}

std::string Ops::fresh() { return free_name(g_, &taken_, &numbers_); }

std::string Ops::make(const std::string& type, Args ins, AttrMap attrs, const std::string& out) {
  auto op = std::make_shared<ir::Op>();
  op->type = type;
  op->attrs = std::move(attrs);
  op->made_at = g_.forward().made_at;
  for (auto& [slot, args] : ins) op->set_input(slot, std::move(args));
  const std::string made = fresh();
  op->set_output(out, {made});
  check_op(*op);
  forward_.push_back(std::move(op));
  made_.insert(made);
  return made;
}

std::string Ops::binary(const char* type, const std::string& x, const std::string& y, int axis) {
  return make(type, {{"X", {x}}, {"Y", {y}}}, {{"axis", int32_t{axis}}});
}

std::string Ops::scale(const std::string& x, double factor, double offset) {
  return make("scale", {{"X", {x}}}, {{"scale", static_cast<float>(factor)}, {"bias", static_cast<float>(offset)}});
}

std::string Ops::sum(const std::string& x, const std::vector<int32_t>& axes, bool keep_dim) {
  return make("reduce_sum", {{"X", {x}}}, {{"dim", axes}, {"keep_dim", keep_dim}});
}

std::string Ops::mean(const std::string& x, const std::vector<int32_t>& axes, bool keep_dim) {
  return make("reduce_mean", {{"X", {x}}}, {{"dim", axes}, {"keep_dim", keep_dim}});
}

std::string Ops::larger(const std::string& x, const std::string& y, int axis) {
  const std::string holds = make("greater_than", {{"X", {x}}, {"Y", {y}}}, {{"axis", int32_t{axis}}});
  const ir::VarRef var = g_.block().find_var_recursive(g_.forward().input_args().at(0));
  const auto to = static_cast<int32_t>(var->dtype);
  const std::string number = make("cast", {{"X", {holds}}}, {{"in_dtype", int32_t{0}}, {"out_dtype", to}});
  constant_.insert(holds);
  constant_.insert(number);
  return number;
}

std::string Ops::positive(const std::string& x) {
  const std::string zeros = make("fill_zeros_like", {{"X", {x}}});
  constant_.insert(zeros);
  return larger(x, zeros, -1);
}

std::string Ops::product_like(const char* side, const std::string& x, const std::string& y, const std::string& dout,
                              int axis) {
  return make("elementwise_mul_grad", {{"X", {x}}, {"Y", {y}}, {"Out@GRAD", {dout}}}, {{"axis", int32_t{axis}}},
              ir::grad_name(side));
}

void Ops::is(const std::string& slot, const std::string& made) {
  const auto flow = g_.dout(slot);
  if (any_given(flow)) parts_[made].push_back(flow[0]);
}

bool Ops::needs(const std::string& name) const {
  if (made_.count(name)) return !constant_.count(name);
  for (const ir::Slot& slot : g_.forward().inputs) {
    for (size_t i = 0; i < slot.args.size(); ++i) {
      if (slot.args[i] == name && g_.needs_din(slot.name, i)) return true;
    }
  }
  return false;
}

std::string Ops::joined(const std::string& made) {
  auto& parts = parts_.at(made);
  if (parts.size() > 1) {
    auto sum = std::make_shared<ir::Op>();
    sum->type = "sum";
    sum->set_input("X", parts);
    const std::string whole = fresh();
    sum->set_output("Out", {whole});
    backward_.push_back(std::move(sum));
    parts = {whole};
  }
  return parts[0];
}

// The gradient ops of one of the ops: gradients of intermediate results are ordinary variables.
void Ops::run_back(const ir::OpRef& op) {
  GradContext context(*op, g_.block(), [this](const std::string& name) { return needs(name); });
  find_op(op->type).run_grad(context);
  const auto own = [this](const std::string& arg) -> std::string {
    if (!arg.ends_with(kGradientMark)) return {};
    for (const auto& made : made_) {
      if (arg == ir::grad_name(made) + kGradientMark) return made;
    }
    return {};
  };
  for (const auto& grad : context.ops) {
    if (grad->output_args().empty()) continue;
    for (auto& slot : grad->inputs) {
      for (auto& arg : slot.args) {
        if (const std::string made = own(arg); !made.empty()) arg = joined(made);
      }
    }
    for (auto& slot : grad->outputs) {
      for (auto& arg : slot.args) {
        const std::string made = own(arg);
        if (made.empty()) continue;
        arg = fresh();
        parts_[made].push_back(arg);
      }
    }
    backward_.push_back(grad);
  }
}

void Ops::differentiate() {
  if (parts_.empty()) return;
  for (auto op = forward_.rbegin(); op != forward_.rend(); ++op) {
    const auto outs = (*op)->output_args();
    const bool reached = std::any_of(outs.begin(), outs.end(), [&](const auto& out) { return parts_.count(out) != 0; });
    if (reached && find_op((*op)->type).has_grad()) run_back(*op);
  }
  std::set<std::string> read;
  for (const auto& op : backward_) {
    for (const auto& arg : op->input_args()) read.insert(arg);
  }
  std::vector<ir::OpRef> kept;
  for (auto op = forward_.rbegin(); op != forward_.rend(); ++op) {
    if (!read.count((*op)->output_args().at(0))) continue;
    for (const auto& arg : (*op)->input_args()) read.insert(arg);
    kept.push_back(*op);
  }
  g_.ops.insert(g_.ops.end(), kept.rbegin(), kept.rend());
  g_.ops.insert(g_.ops.end(), backward_.begin(), backward_.end());
}

Maker through(std::function<void(Ops&)> fn) {
  return [fn = std::move(fn)](GradContext& g) {
    Ops ops(g);
    fn(ops);
    ops.differentiate();
  };
}

}  // namespace anabranch::second_order
