// A block that is run for each step and is an LSTM becomes lstm_steps, and its gradient block lstm_steps_grad: the
// products of all steps are one, weights stay packed, gates are one pass. What the block computes is read off its ops;
// the gradient block must be what append_backward makes of it. Anything else stays as it is, and explain() says why.
#include <fmt/format.h>

#include <algorithm>

#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "graph/passes/patterns/block_gradient.h"
#include "graph/passes/patterns/lstm_block.h"

namespace anabranch {
namespace {

using Names = std::vector<std::string>;

int block_of(const GraphNode& node) { return node.op->attr<BlockRef>("sub_block").idx; }

// The argument of a slot by its name in the op.
int named(const GraphNode& node, const char* slot, const std::string& name) {
  const auto& names = node.op->input(slot);
  const auto vars = input_vars(node, slot);
  for (size_t i = 0; i < names.size() && i < vars.size(); ++i) {
    if (names[i] == name) return vars[i];
  }
  return -1;
}

class LstmFuser {
 public:
  LstmFuser(Graph& graph, const PassContext& context) : graph_(graph), context_(context), edit_(graph) {}

  int run() {
    int fused = 0;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (graph_.nodes[i].op->type != "recurrent") continue;
      const GraphNode node = graph_.nodes[i];
      const std::string why = fuse(i);
      const std::string what = why.empty() ? "an LSTM" : "left as it is: " + why;
      if (context_.notes && node.replica == 0) {
        context_.notes->push_back(fmt::format("{}: {}", node.op->describe(node.index, 0), what));
      }
      fused += why.empty();
    }
    edit_.commit();
    return fused;
  }

 private:
  // Everything that lstm_steps and its gradient take, as variables of the graph.
  struct Parts {
    LstmBlock block;
    int x = -1, h0 = -1, c0 = -1, weight = -1, bias = -1, forget_bias = -1;
    int hidden = -1, cell = -1, gates = -1;
    std::vector<std::pair<int, int>> instead = {};  // variables that are no longer made, and what is read instead
  };

  std::string fuse(int at) {
    const GraphNode forward = graph_.nodes[at];
    const ir::Block& body = context_.program->block(block_of(forward));
    Parts parts{.block = match_lstm(body, *forward.op)};
    if (!parts.block.why.empty()) return parts.block.why;
    int gradient = -1;
    if (std::string why = find_gradient(forward, at, &gradient); !why.empty()) return why;
    if (std::string why = gather(forward, &parts); !why.empty()) return why;
    if (gradient >= 0) {
      if (std::string why = check_gradient(forward, graph_.nodes[gradient], parts.block); !why.empty()) return why;
    }
    make_values(forward, &parts);
    put_forward(at, forward, parts);
    if (gradient >= 0) put_gradient(gradient, graph_.nodes[gradient], parts);
    for (const auto& [from, to] : parts.instead) {
      for (const int reader : edit_.uses.readers(from)) read_instead(graph_, graph_.nodes[reader], from, to);
    }
    return "";
  }

  std::string find_gradient(const GraphNode& forward, int at, int* gradient) const {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      if (node.op->type != "recurrent_grad" || node.replica != forward.replica) continue;
      if (context_.program->block(block_of(node)).forward_block != block_of(forward)) continue;
      if (*gradient >= 0 || static_cast<int>(i) < at) return "it has several gradients";
      *gradient = static_cast<int>(i);
    }
    const int scopes = output_var(forward, "step_scopes");
    if (scopes < 0) return "";
    const auto& readers = edit_.uses.readers(scopes);
    const bool alone = std::all_of(readers.begin(), readers.end(), [&](int reader) { return reader == *gradient; });
    return alone && edit_.uses.is_inner(scopes) ? "" : "somebody else reads what it keeps";
  }

  std::string gather(const GraphNode& forward, Parts* parts) const {
    const LstmBlock& b = parts->block;
    const auto begun = input_vars(forward, "initial_states");
    if (begun.size() != 2) return "it has no two initial states";
    parts->x = input_var(forward, "inputs");
    parts->h0 = begun[b.hidden_memory];
    parts->c0 = begun[b.cell_memory];
    parts->weight = named(forward, "parameters", b.weight);
    parts->bias = b.bias.empty() ? -1 : named(forward, "parameters", b.bias);
    parts->forget_bias = b.forget_bias.empty() ? -1 : named(forward, "parameters", b.forget_bias);
    for (const int var : {parts->x, parts->h0, parts->c0, parts->weight}) {
      if (!is_float(graph_, var)) return "an argument is not float32";
    }
    if (!b.bias.empty() && !is_float(graph_, parts->bias)) return "its bias is not float32";
    if (!b.forget_bias.empty() && !is_float(graph_, parts->forget_bias)) return "its forget bias is not float32";
    if (graph_.vars[parts->x].desc.shape.rank() != 3) return "a step of x is no matrix";
    return choose(forward, parts);
  }

  // One variable for each of the two states. Another one that shows the same is no longer made: who reads it reads the
  // chosen one.
  std::string choose(const GraphNode& forward, Parts* parts) const {
    const auto shown = output_vars(forward, "outputs");
    for (size_t i = 0; i < shown.size(); ++i) {
      const int var = shown[i];
      int& chosen = parts->block.shows_hidden[i] ? parts->hidden : parts->cell;
      if (var < 0) continue;
      if (chosen < 0) {
        chosen = var;
      } else if (replaceable(var)) {
        parts->instead.emplace_back(var, chosen);
      } else if (replaceable(chosen)) {
        for (auto& [from, to] : parts->instead) to = to == chosen ? var : to;
        parts->instead.emplace_back(chosen, var);
        chosen = var;
      } else {
        return "one state is given out twice, and both are wanted after the run";
      }
    }
    for (const auto& [from, to] : parts->instead) {
      if (edit_.uses.writer(to) < 0) return "an output is written again";
    }
    return "";
  }

  bool replaceable(int var) const {
    if (!edit_.uses.is_inner(var)) return false;
    const auto& readers = edit_.uses.readers(var);
    return std::none_of(readers.begin(), readers.end(), [&](int r) {
      const auto& more = graph_.nodes[r].more_reads;
      return graph_.nodes[r].op->type != "recurrent_grad" && std::count(more.begin(), more.end(), var) != 0;
    });
  }

  // Gradients that come from outside: of outputs, and from the step after.
  std::string check_gradient(const GraphNode& forward, const GraphNode& node, const LstmBlock& b) const {
    const ir::Op &made = *forward.op, &back = *node.op;
    for (const char* slot : {"inputs", "initial_states", "parameters"}) {
      const auto mine = input_vars(forward, slot), its = input_vars(node, slot);
      if (!std::equal(mine.begin(), mine.end(), its.begin(), its.end())) return "its gradient reads other values";
    }
    for (const char* attr : {"ex_states", "states"}) {
      if (made.attr<Names>(attr) != back.attr<Names>(attr)) return "its gradient has other memories";
    }
    if (back.attr<bool>("reverse") || !node.more_writes.empty()) return "its gradient runs another way";
    std::map<std::string, std::string> seeds;
    const auto &outputs = back.input("outputs"), &given = back.input("outputs@GRAD");
    if (outputs != made.output("outputs") || given.size() > outputs.size()) return "its gradient has other outputs";
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] != ir::kEmptyVar) seeds[outputs[i]] = ir::grad_name(outputs[i]);
    }
    for (const auto& state : made.attr<Names>("states")) seeds[state] = ir::grad_name(state);
    const ir::Program& program = *context_.program;
    const BlockGradient check(program.block(block_of(forward)), program.block(block_of(node)), seeds);
    if (!check.why().empty()) return check.why();
    Names wanted = made.attr<Names>("ex_states");
    const auto want = [&](const char* slot, const Names& names) {
      const auto vars = output_vars(node, slot);
      for (size_t i = 0; i < vars.size() && i < names.size(); ++i) {
        if (vars[i] >= 0) wanted.push_back(names[i]);
      }
    };
    want("inputs@GRAD", made.input("inputs"));
    want("parameters@GRAD", made.input("parameters"));
    for (const auto& name : wanted) {
      if (!check.is_gradient(ir::grad_name(name), name)) return fmt::format("the gradient of {} is another", name);
      const bool known = name == b.x || name == b.weight || name == b.bias || name == b.forget_bias;
      const auto& memories = made.attr<Names>("ex_states");
      if (!known && !std::count(memories.begin(), memories.end(), name)) return fmt::format("{} has a gradient", name);
    }
    return "";
  }

  int new_value(const GraphNode& forward, const char* what) {
    const GraphVar& like = graph_.vars[output_vars(forward, "outputs")[0]];
    ir::Var desc;
    desc.name = fmt::format("{}@{}@lstm_steps", like.name, what);
    desc.kind = VarKind::kLoDTensor;
    desc.dtype = DType::kFloat32;
    const bool dynamic = like.dynamic;
    const int var = graph_.var(desc.name, forward.replica, desc);
    graph_.vars[var].produced = true;
    graph_.vars[var].dynamic = dynamic;
    return var;
  }

  void make_values(const GraphNode& forward, Parts* parts) {
    if (parts->hidden < 0) parts->hidden = new_value(forward, "hidden");
    if (parts->cell < 0) parts->cell = new_value(forward, "cell");
    parts->gates = new_value(forward, "gates");
  }

  NodeBuilder node_of(const char* type, const GraphNode& like, const Parts& p) const {
    NodeBuilder node(graph_, type, like);
    node.attr("state_first", p.block.state_first)
        .attr("order", std::vector<int32_t>(p.block.order.begin(), p.block.order.end()))
        .in("X", p.x)
        .in("H0", p.h0)
        .in("C0", p.c0)
        .in("Weight", p.weight)
        .in("Bias", p.bias)
        .in("ForgetBias", p.forget_bias);
    return node;
  }

  void put_forward(int at, const GraphNode& forward, const Parts& p) {
    NodeBuilder node = node_of("lstm_steps", forward, p);
    node.out("Hidden", p.hidden).out("Cell", p.cell).out("Gates", p.gates);
    edit_.replace({at}, node.done());
  }

  void put_gradient(int at, const GraphNode& gradient, const Parts& p) {
    NodeBuilder node = node_of("lstm_steps_grad", gradient, p);
    node.in("Hidden", p.hidden).in("Cell", p.cell).in("Gates", p.gates);
    const auto given = input_vars(gradient, "outputs@GRAD");
    std::vector<int> of_hidden, of_cell;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] >= 0) (p.block.shows_hidden[i] ? of_hidden : of_cell).push_back(given[i]);
    }
    node.in("Hidden@GRAD", of_hidden).in("Cell@GRAD", of_cell);
    const auto begun = output_vars(gradient, "initial_states@GRAD");
    const auto of_memory = [&](size_t m) { return m < begun.size() ? begun[m] : -1; };
    const auto of_parameter = [&](const std::string& name) {
      const auto& names = gradient.op->input("parameters");
      const auto vars = output_vars(gradient, "parameters@GRAD");
      for (size_t i = 0; i < names.size() && i < vars.size(); ++i) {
        if (!name.empty() && names[i] == name) return vars[i];
      }
      return -1;
    };
    node.attr("op_role_var", role_vars_of(graph_, {at}))
        .out("X@GRAD", output_var(gradient, "inputs@GRAD"))
        .out("H0@GRAD", of_memory(p.block.hidden_memory))
        .out("C0@GRAD", of_memory(p.block.cell_memory))
        .out("Weight@GRAD", of_parameter(p.block.weight))
        .out("Bias@GRAD", of_parameter(p.block.bias))
        .out("ForgetBias@GRAD", of_parameter(p.block.forget_bias));
    edit_.replace({at}, node.done());
  }

  Graph& graph_;
  const PassContext& context_;
  GraphEdit edit_;
};

int run(Graph& graph, const PassContext& context) { return context.program ? LstmFuser(graph, context).run() : 0; }

const char* skip(const PassContext& context) {
  return context.build.use_bfloat16 ? "use_bfloat16 is True: products of a block are rounded one by one" : nullptr;
}

}  // namespace

const Pass kFuseRecurrent = {.name = "fuse_recurrent",
                             .what = "a block for each step that is an LSTM becomes one op, and so does its gradient",
                             .tolerance = "sums in another order: 1e-6 of their size",
                             .needs_flag = "FLAGS_fuse_recurrent",
                             .skip = skip,
                             .run = run};

}  // namespace anabranch
