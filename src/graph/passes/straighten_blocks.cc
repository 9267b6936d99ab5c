// straighten_blocks: a conditional block of a few cheap ops becomes these ops, and a select for each variable that it
// writes: the ops' result if the condition holds, else the previous value. So it stays on a device, which never asks
// the host for the condition. Blocks with other ops, other shapes or gradients stay blocks.
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string>

#include "graph/edit.h"
#include "graph/passes/for_devices.h"
#include "graph/passes/passes.h"
#include "opdef/infer_context.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

constexpr const char* kBranch = "conditional_block";

// Pure, cheap for any operands, and never an error for values.
const std::set<std::string> kCheap = {
    "assign",          "fill_constant",   "fill_zeros_like", "scale",           "increment",       "cast",
    "elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_max", "less_than",       "elementwise_min",
    "less_equal",      "greater_than",    "greater_equal",   "equal",           "not_equal",       "isfinite",
    "logical_and",     "logical_or",      "logical_not",     "logical_xor",     "elementwise_pow", "sqrt"};

bool is_float_division(const ir::Op& op, const ir::Block& block) {
  if (op.type != "elementwise_div") return false;
  const auto x = block.find_var_recursive(op.input_args()[0]);
  return x && (x->dtype == DType::kFloat32 || x->dtype == DType::kFloat64);
}

bool is_fixed(const ir::Var& desc) {
  return desc.kind == VarKind::kLoDTensor && desc.lod_level == 0 && desc.shape.rank() > 0 && desc.shape.known();
}

// Whether its outputs have their declared dtypes: the previous values have those.
bool makes_declared_dtypes(const ir::Op& op, const ir::Block& block) {
  InferContext c(find_op(op.type), op, false);
  const auto ins = op.input_args(), outs = op.output_args();
  for (size_t k = 0; k < ins.size(); ++k) {
    const auto desc = block.find_var_recursive(ins[k]);
    c.ins[k].shape = desc->shape;
    c.ins[k].dtype = desc->dtype;
  }
  try {
    find_op(op.type).run_infer(c);
  } catch (const Error&) {
    return false;
  }
  for (size_t k = 0; k < outs.size(); ++k) {
    if (c.outs[k].dtype != block.find_var_recursive(outs[k])->dtype) return false;
  }
  return true;
}

class Straightener {
 public:
  Straightener(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    find_uses();
    std::vector<GraphNode> nodes = std::move(graph_.nodes);
    for (GraphNode& node : nodes) {
      if (node.op->type == kBranch && !context_.places[static_cast<size_t>(node.replica)].on_host()) {
        const std::string why = reason_to_stay(node);
        if (why.empty()) {
          straighten(node);
          continue;
        }
        stay_.insert(why);
      }
      for (const int v : graph_.writes(node)) set_.insert(v);
      out_.push_back(std::move(node));
    }
    graph_.nodes = std::move(out_);
    if (done_) settle();
    if (context_.notes) {
      for (const auto& why : stay_) context_.notes->push_back("a block stays one: " + why);
    }
    return done_;
  }

 private:
  using Values = std::map<std::string, int>;  // by name

  void find_uses() {
    for (const GraphNode& node : graph_.nodes) {
      for (const int v : graph_.reads(node)) read_.insert(v);
    }
  }

  const ir::Block& block(const ir::Op& op) const { return context_.program->block(op.attr<BlockRef>("sub_block").idx); }

  std::string reason_to_stay(const GraphNode& node) const {
    const int scope = output_var(node, "Scope");
    if (scope >= 0 && read_.count(scope)) return "its gradient runs it, too";
    for (const int v : graph_.writes(node)) {
      const GraphVar& var = graph_.vars[v];
      if (v == scope) continue;
      if (!var.desc.persistable && !var.fed && !set_.count(v)) return var.name + " may hold nothing before it";
    }
    if (input_vars(node, "Cond").size() != 1) return "its condition is not a scalar";
    return reason_in(*node.op);
  }

  std::string reason_in(const ir::Op& op) const {
    if (!op.attr<bool>("is_scalar_condition")) return "its condition is not a scalar";
    const ir::Block& inner = block(op);
    for (const auto& each : inner.ops()) {
      if (each->type == kBranch) {
        if (const auto why = reason_in(*each); !why.empty()) return why;
      } else if (!kCheap.count(each->type) && !is_float_division(*each, inner)) {
        return fmt::format("it has the op {}", each->type);
      }
      for (const auto& names : {each->input_args(), each->output_args()}) {
        for (const auto& name : names) {
          const auto desc = inner.find_var_recursive(name);
          const bool scope = desc && desc->kind == VarKind::kStepScopes;
          if (!scope && (!desc || !is_fixed(*desc))) return name + " is not a tensor of a fixed shape";
        }
      }
      if (each->type != kBranch && !makes_declared_dtypes(*each, inner))
        return fmt::format("{} makes another dtype than declared", each->type);
    }
    return "";
  }

  void straighten(const GraphNode& node) {
    Values values;
    for (const auto& vars : {graph_.reads(node), graph_.writes(node)}) {
      for (const int v : vars) values[graph_.vars[v].name] = v;
    }
    const Values before = values;
    add_block(node, block(*node.op), values);
    const int cond = input_var(node, "Cond");
    // If the block writes the condition, its select comes last, because the other selects read the old value.
    const auto all = graph_.writes(node);
    std::vector<int> written;
    for (const int v : std::set<int>(all.begin(), all.end())) {
      const auto at = values.find(graph_.vars[v].name);
      if (at == values.end() || at->second == v) continue;
      v == cond ? written.push_back(v) : (void)written.insert(written.begin(), v);
    }
    for (const int v : written) {
      out_.push_back(select(node, cond, values.at(graph_.vars[v].name), v, v));
      changed_.insert(v);
    }
    ++done_;
  }

  GraphNode select(const GraphNode& near, int cond, int x, int y, int out) const {
    return NodeBuilder(graph_, "select", near).in("Cond", cond).in("X", x).in("Y", y).out("Out", out).done();
  }

  int fresh(const std::string& name, const ir::Var& like, int replica) {
    ir::Var desc = like;
    desc.name = fmt::format("@straight_{}@{}", number_++, name);
    desc.persistable = false;
    const int v = graph_.var(desc.name, replica, desc);
    graph_.vars[v].produced = graph_.vars[v].speculative = true;
    return v;
  }

  int value(const std::string& name, const ir::Block& in, const Values& values, int replica) {
    const auto it = values.find(name);
    return it != values.end() ? it->second : graph_.var(name, replica, *in.find_var_recursive(name));
  }

  void add_block(const GraphNode& near, const ir::Block& in, Values& values) {
    for (const auto& op : in.ops()) {
      op->type == kBranch ? add_branch(near, *op, in, values) : add_op(near, op, in, values);
    }
  }

  void add_branch(const GraphNode& near, const ir::Op& op, const ir::Block& in, Values& values) {
    const int cond = value(op.input("Cond")[0], in, values, near.replica);
    Values then = values;
    add_block(near, block(op), then);
    for (const auto& name : op.output("Out")) {
      const int made = value(name, in, then, near.replica), held = value(name, in, values, near.replica);
      if (made == held) continue;
      const int out = fresh(name, *in.find_var_recursive(name), near.replica);
      out_.push_back(select(near, cond, made, held, out));
      values[name] = out;
    }
  }

  void add_op(const GraphNode& near, const ir::OpRef& op, const ir::Block& in, Values& values) {
    NodeBuilder node(graph_, op->type, op, near.index, near.replica);
    node.copy_all();
    for (const auto& slot : op->inputs) {
      std::vector<int> vars;
      for (const auto& name : slot.args) vars.push_back(value(name, in, values, near.replica));
      node.in(slot.name, vars);
    }
    Values made;
    for (const auto& slot : op->outputs) {
      std::vector<int> vars;
      for (const auto& name : slot.args) {
        vars.push_back(made[name] = fresh(name, *in.find_var_recursive(name), near.replica));
      }
      node.out(slot.name, vars);
    }
    out_.push_back(node.done());
    for (const auto& [name, v] : made) values[name] = v;
  }

  // Shapes of variables written only by such blocks no longer depend on values, and copies before and after them are
  // tensors.
  void settle() {
    describe_versions(graph_, context_.program->block(0));
    for (GraphNode& node : graph_.nodes) {
      if (node.op->type != "copy_value") continue;
      const int from = node.ins[0], to = node.outs[0];
      const bool starts = changed_.count(to) && graph_.vars[from].desc.persistable;
      if (!starts && !changed_.count(from)) continue;
      if (!is_fixed(graph_.vars[from].desc) || !is_fixed(graph_.vars[to].desc)) continue;
      node = NodeBuilder(graph_, "assign", node).in("X", from).out("Out", to).done();
    }
    std::set<int> in_blocks;
    for (const GraphNode& node : graph_.nodes) {
      if (node.op->type != kBranch) continue;
      for (const int v : graph_.writes(node)) in_blocks.insert(v);
    }
    for (const int v : changed_) {
      if (!in_blocks.count(v)) graph_.vars[v].dynamic = false;
    }
    settle_dynamic(graph_);
  }

  Graph& graph_;
  const PassContext& context_;
  std::vector<GraphNode> out_;
  std::set<int> read_, set_, changed_;  // variables
  std::set<std::string> stay_;
  int number_ = 0, done_ = 0;
};

int straighten_blocks(Graph& graph, const PassContext& context) { return Straightener(graph, context).run(); }

}  // namespace

const Pass kStraightenBlocks = {.name = "straighten_blocks",
                                .what = "replaces conditional blocks of cheap ops with selections, on devices",
                                .tolerance = "bit-equal",
                                .trusts_shapes = true,
                                .on_devices = true,
                                .skip = skip_on_cpu,
                                .run = straighten_blocks};

}  // namespace anabranch
