// Fuses a convolution with the ops after it: the sum with a bias, the sum with another image, relu. The result is
// a conv2d_fusion. If the program never writes the filter, it is packed into the kernels' layout once.
#include <algorithm>

#include "graph/edit.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

struct Match {
  std::vector<int> parts;
  int bias = -1, residual = -1, out = -1;  // variables
  bool relu = false;
};

bool is_image(const Graph& graph, int var) { return is_float(graph, var) && graph.vars[var].desc.shape.rank() == 4; }

class ConvFuser {
 public:
  ConvFuser(Graph& graph, const PassContext& context) : graph_(graph), context_(context), edit_(graph) {}

  int run() {
    int fused = 0;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (!edit_.gone(i) && is_conv(graph_.nodes[i])) fused += fuse(i);
    }
    edit_.commit();
    return fused;
  }

 private:
  bool is_conv(const GraphNode& node) const {
    const std::string& type = node.op->type;
    return (type == "conv2d" || type == "depthwise_conv2d") && is_plain(node) &&
           is_image(graph_, input_var(node, "Input")) && is_image(graph_, output_var(node, "Output")) &&
           is_image(graph_, input_var(node, "Filter"));
  }

  // The only node that reads the private variable `out`, if it can follow the parts.
  int next(const Match& m, const char* type) const {
    if (!edit_.uses.is_private(m.out)) return -1;
    const int i = edit_.uses.reader(m.out);
    if (i <= m.parts.back() || edit_.gone(i)) return -1;
    const GraphNode& node = graph_.nodes[i];
    if (node.op->type != type || node.replica != graph_.nodes[m.parts[0]].replica || !is_plain(node) ||
        !is_image(graph_, output_var(node, "Out"))) {
      return -1;
    }
    std::vector<int> parts = m.parts;
    parts.push_back(i);
    return edit_.may_gather(parts) ? i : -1;
  }

  void take(Match& m, int node) const {
    m.parts.push_back(node);
    m.out = output_var(graph_.nodes[node], "Out");
  }

  bool take_bias(Match& m) const {
    const int i = next(m, "elementwise_add");
    if (i < 0) return false;
    const GraphNode &add = graph_.nodes[i], &conv = graph_.nodes[m.parts[0]];
    const int bias = input_var(add, "Y"), filter = input_var(conv, "Filter");
    if (input_var(add, "X") != m.out || bias < 0 || graph_.vars[bias].desc.dtype != DType::kFloat32) return false;
    const bool last = conv.op->attr<std::string>("data_format") == "NHWC";
    const auto axis = add.op->attr<int32_t>("axis");
    const Shape& shape = graph_.vars[bias].desc.shape;
    const bool by_channel = last ? axis == 3 || axis == -1 : axis == 1;
    if (!by_channel || shape.rank() != 1 || shape[0] != graph_.vars[filter].desc.shape[0]) return false;
    m.bias = bias;
    take(m, i);
    return true;
  }

  // The variable from which `var` has its number of samples.
  int batch_of(int var) const {
    constexpr int kFar = 64;
    for (int steps = 0; steps < kFar; ++steps) {
      const int i = edit_.uses.writer(var);
      if (i < 0) return var;
      const GraphNode& node = graph_.nodes[i];
      const std::string& type = node.op->type;
      const bool conv = type == "conv2d" || type == "depthwise_conv2d";
      if (!conv && type != "relu" && type != "batch_norm" && type != "pool2d") return var;
      var = input_var(node, conv ? "Input" : "X");
      if (var < 0) return -1;
    }
    return -1;
  }

  // Images of one declared shape have equal shapes if their samples come from the same source.
  bool take_residual(Match& m) const {
    const int i = next(m, "elementwise_add");
    if (i < 0) return false;
    const GraphNode& add = graph_.nodes[i];
    const int x = input_var(add, "X"), y = input_var(add, "Y");
    const int other = x == m.out ? y : x;
    if (!is_image(graph_, other) || other == m.out) return false;
    const Shape& shape = graph_.vars[m.out].desc.shape;
    if (!(graph_.vars[other].desc.shape == shape) || !shape.slice(1, 4).known()) return false;
    const int batch = batch_of(output_var(graph_.nodes[m.parts[0]], "Output"));
    if (!shape.known() && (batch < 0 || batch != batch_of(other))) return false;
    m.residual = other;
    take(m, i);
    return true;
  }

  bool fuse(int i) {
    const GraphNode& conv = graph_.nodes[i];
    Match m{{i}, -1, -1, output_var(conv, "Output"), false};
    take_bias(m);
    take_residual(m);
    if (const int act = next(m, "relu"); act >= 0) {
      m.relu = true;
      take(m, act);
    }
    const bool constant = is_constant(input_var(conv, "Filter"));
    if (m.parts.size() < 2 && !constant) return false;
    edit_.replace(m.parts, made(m, constant));
    return true;
  }

  // A copy on another replica does not tell when it was refreshed.
  bool is_constant(int var) const {
    if (std::max(graph_.replicas, context_.replicas) > 1 || !edit_.uses.writers(var).empty()) return false;
    if (context_.block == 0) return graph_.vars[var].desc.persistable;
    return context_.program && is_constant(*context_.program, graph_.vars[var].name);
  }

  // Within a block all outer variables are persistable, and others may write them.
  bool is_constant(const ir::Program& program, const std::string& name) const {
    const auto known = program.block(context_.block).find_var_recursive(name);
    if (!known || !known->persistable) return false;
    for (int b = 0; b < program.num_blocks(); ++b) {
      for (const auto& op : program.block(b).ops()) {
        const auto written = op->output_args();
        if (std::count(written.begin(), written.end(), name) != 0) return false;
      }
    }
    return true;
  }

  GraphNode made(const Match& m, bool constant) const {
    const GraphNode& conv = graph_.nodes[m.parts[0]];
    NodeBuilder node(graph_, "conv2d_fusion", conv);
    node.copy({"strides", "paddings", "padding_algorithm", "data_format", "dilations", "groups"})
        .attr("activation", std::string(m.relu ? "relu" : ""))
        .attr("constant_filter", constant)
        .in("Input", input_var(conv, "Input"))
        .in("Filter", input_var(conv, "Filter"))
        .in("Bias", m.bias)
        .in("ResidualData", m.residual)
        .out("Output", m.out);
    if (conv.op->has_attr("bfloat16")) node.copy({"bfloat16"});
    return node.done();
  }

  Graph& graph_;
  const PassContext& context_;
  GraphEdit edit_;
};

}  // namespace

const Pass kFuseConv = {.name = "fuse_conv",
                        .what = "convolutions fuse the bias, sum and relu after them; constant filters are packed once",
                        .tolerance = "bit-equal",
                        .needs = AB_SWITCH(fuse_elewise_add_act_ops),
                        .in_bodies = true,
                        .run = [](Graph& g, const PassContext& context) { return ConvFuser(g, context).run(); }};

}  // namespace anabranch
