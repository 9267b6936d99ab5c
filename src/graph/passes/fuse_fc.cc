// mul + elementwise_add of a bias + relu, sigmoid or tanh become fused_fc, and their gradients fused_fc_grad. An op
// whose result is fetched, or has other readers, is kept. On devices, whose product libraries fuse a bias and relu,
// only the forward ops are fused: sigmoid and tanh follow separately, and gradients are separate ops, which also read
// the fused op's results.
#include <algorithm>
#include <map>
#include <set>

#include "graph/match.h"
#include "graph/on_device.h"
#include "graph/passes/passes.h"
#include "graph/passes/patterns/fc_bias.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace fc {
namespace {

enum Name { kX, kY, kBias };
enum Part { kMul, kAdd, kAct };

bool on_devices(const Match& m) { return !m.context().places.empty(); }

// Tensors of one float type: float32, and on devices also 16-bit floats.
bool alike(const ir::Var& a, const ir::Var& b) {
  const bool is_float = a.dtype == DType::kFloat32 || a.dtype == DType::kFloat16 || a.dtype == DType::kBFloat16;
  return is_float && a.dtype == b.dtype && a.kind == VarKind::kLoDTensor && b.kind == a.kind;
}

// Y is a matrix, so the columns of the product are its last axis.
bool multiplies(const Match& m, const GraphNode& mul) {
  return mul.op->attr<int32_t>("y_num_col_dims") == 1 && alike(m.desc(kX), m.desc(kY)) &&
         m.desc(kY).shape.rank() == 2 && (on_devices(m) || m.desc(kX).dtype == DType::kFloat32);
}

// One number for each column of the product.
bool adds_bias(const Match& m, const GraphNode& add) {
  return alike(m.desc(kBias), m.desc(kY)) && adds_to_columns(add, m.desc(kBias), *m.node(kMul), m.desc(kY));
}

bool is_fused(const Match& m, const GraphNode& act) { return !on_devices(m) || act.op->type == "relu"; }

const Pattern& layer() {
  static const Pattern pattern =
      down(op("mul").in("X", kX).in("Y", kY).makes("Out").when(multiplies, "Y is not a matrix of floats"))
          .maybe(op("elementwise_add")
                     .reads("X")
                     .in("Y", kBias)
                     .makes("Out")
                     .when(adds_bias, "Y does not have one number for each column"))
          .maybe(op([](const OpDef& def) { return def.is_activation(); })
                     .reads("X")
                     .makes("Out")
                     .when(is_fused, "libraries of devices fuse relu only"));
  return pattern;
}

const Pattern& gradients() {
  static const Pattern pattern = layer().gradient();
  return pattern;
}

// The fused op; `act`: the activation's forward op.
NodeBuilder node_of(const Match& m, const char* type, const std::string& act) {
  NodeBuilder node(m.graph(), type, *m.node(kMul));
  node.copy({"x_num_col_dims", "y_num_col_dims"}).attr("activation", act);
  if (m.node(kMul)->op->has_attr("bfloat16")) node.copy({"bfloat16"});
  node.in("X", m[kX]).in("Y", m[kY]).in("Bias", m[kBias]);
  return node;
}

// The pass mixed_precision casts a bias at its first reader, after the product: the cast can also come before it.
void cast_before_products(Graph& graph) {
  const Uses uses(graph);
  std::multimap<int, int> before;  // products, casts
  std::set<int> moved;
  for (const GraphNode& add : graph.nodes) {
    if (add.op->type != "elementwise_add") continue;
    const int out = input_var(add, "X"), bias = input_var(add, "Y");
    const int product = out < 0 ? -1 : uses.writer(out), cast = bias < 0 ? -1 : uses.writer(bias);
    if (product < 0 || cast < product || graph.nodes[product].op->type != "mul") continue;
    if (graph.nodes[cast].op->type != "cast") continue;
    const auto& writers = uses.writers(input_var(graph.nodes[cast], "X"));
    if (std::any_of(writers.begin(), writers.end(), [&](int w) { return w >= product && w < cast; })) continue;
    if (moved.insert(cast).second) before.emplace(product, cast);
  }
  std::vector<GraphNode> nodes;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    for (auto [at, end] = before.equal_range(i); at != end; ++at) nodes.push_back(graph.nodes[at->second]);
    if (!moved.count(i)) nodes.push_back(graph.nodes[i]);
  }
  graph.nodes = std::move(nodes);
}

// The device runs the parts, and has a kernel for the fused op.
bool fits_device(const Match& m, const GraphNode& fused) {
  const std::vector<int> parts = m.parts();
  const auto runs = [&](const GraphNode& node) { return runs_on_device(m.graph(), node, metas_of(m.graph(), node)); };
  return !m.context().places[static_cast<size_t>(fused.replica)].on_host() && runs(fused) &&
         std::all_of(parts.begin(), parts.end(), [&](int part) { return runs(m.graph().nodes[part]); });
}

bool fuse_forward(GraphEdit& edit, const Match& m) {
  GraphNode fused = node_of(m, "fused_fc", m.has(kAct) ? m.node(kAct)->op->type : "").out("Out", m.end()).done();
  if (on_devices(m) && !fits_device(m, fused)) return false;
  edit.replace(m.parts(), std::move(fused));
  return true;
}

bool fuse_gradients(GraphEdit& edit, const Match& m) {
  const GraphNode* act = m.node(kAct);
  NodeBuilder node = node_of(m, "fused_fc_grad", act ? find_op(act->op->type).forward()->type() : "");
  node.attr("op_role_var", role_vars_of(m.graph(), m.parts()))
      .in("Out", m.result(kAct))
      .in("Out@GRAD", m.end())
      .out("Sum@GRAD", act ? output_var(*act, "X@GRAD") : -1)
      .out("X@GRAD", m.gradient(kX))
      .out("Y@GRAD", m.gradient(kY))
      .out("Bias@GRAD", m.gradient(kBias));
  edit.replace(m.parts(), node.done());
  return true;
}

int run(Graph& graph, const PassContext& context) {
  if (!context.places.empty()) {
    cast_before_products(graph);
    return fuse(graph, context, {{layer(), fuse_forward}});
  }
  return fuse(graph, context, {{layer(), fuse_forward}, {gradients(), fuse_gradients}});
}

}  // namespace
}  // namespace fc

const Pass kFuseFc = {.name = "fuse_fc",
                      .what = "fuses a matrix product with the bias and the activation after it",
                      .tolerance = "bit-equal; on devices 16-bit floats are rounded once",
                      .needs = AB_SWITCH(fuse_elewise_add_act_ops),
                      .in_bodies = true,
                      .on_devices = true,
                      .run = fc::run};

}  // namespace anabranch
