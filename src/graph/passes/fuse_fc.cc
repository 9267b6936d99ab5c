// mul + elementwise_add of a bias + relu, sigmoid or tanh become fused_fc, and their gradients fused_fc_grad. An op
// whose result is fetched, or has other readers, is kept. On devices, whose product libraries fuse a bias and relu,
// only the forward ops are fused: sigmoid and tanh follow separately, and gradients are separate ops, which also read
// the fused op's results.
#include <algorithm>
#include <map>
#include <set>

#include "graph/edit.h"
#include "graph/on_device.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

struct FcMatch {
  std::vector<int> parts;
  int bias = -1;  // variables
  int out = -1;
  std::string activation;
};

// Tensors of one float type: float32, and on devices also 16-bit floats.
bool alike(const Graph& graph, int a, int b) {
  if (a < 0 || b < 0) return false;
  const ir::Var &first = graph.vars[a].desc, &second = graph.vars[b].desc;
  const bool is_float =
      first.dtype == DType::kFloat32 || first.dtype == DType::kFloat16 || first.dtype == DType::kBFloat16;
  return is_float && first.dtype == second.dtype && first.kind == VarKind::kLoDTensor && second.kind == first.kind;
}

// Y is a matrix, so the columns of the product are its last axis.
bool multiplies(const Graph& graph, const GraphNode& node, const char* type) {
  if (node.op->type != type || !is_plain(node) || node.op->attr<int32_t>("y_num_col_dims") != 1) return false;
  const int x = input_var(node, "X"), y = input_var(node, "Y");
  return alike(graph, x, y) && graph.vars[y].desc.shape.rank() == 2;
}

// elementwise_add (or its gradient) of the product and one number for each column.
bool adds_bias(const Graph& graph, const GraphNode& add, const GraphNode& product, int product_rank) {
  const int bias = input_var(add, "Y"), columns = input_var(product, "Y");
  if (!is_plain(add) || !alike(graph, bias, columns) || add.replica != product.replica) return false;
  const Shape &b = graph.vars[bias].desc.shape, &y = graph.vars[columns].desc.shape;
  const auto axis = add.op->attr<int32_t>("axis");
  return b.rank() == 1 && b[0] == y[1] && b[0] > 0 && (axis == -1 || axis == product_rank - 1);
}

std::string activation_of(const OpDef& def) { return def.is_activation() ? def.type() : ""; }

NodeBuilder node_of(const Graph& graph, const char* type, const GraphNode& product, const std::string& activation) {
  NodeBuilder node(graph, type, product);
  node.copy({"x_num_col_dims", "y_num_col_dims"}).attr("activation", activation);
  if (product.op->has_attr("bfloat16")) node.copy({"bfloat16"});
  return node;
}

// ---- forward: from the product down

FcMatch match_forward(const Graph& graph, const GraphEdit& edit, int i, bool on_devices) {
  const GraphNode& product = graph.nodes[i];
  FcMatch m{{i}, -1, output_var(product, "Out"), ""};
  if (!multiplies(graph, product, "mul") || m.out < 0) return m;
  if (!on_devices && !is_float(graph, input_var(product, "X"))) return m;
  const int rank = graph.vars[m.out].desc.shape.rank();
  int next = edit.uses.is_private(m.out) ? edit.uses.reader(m.out) : -1;
  if (next > i && graph.nodes[next].op->type == "elementwise_add") {
    const GraphNode& add = graph.nodes[next];
    const int out = output_var(add, "Out");
    if (input_var(add, "X") != m.out || out < 0 || !adds_bias(graph, add, product, rank)) return m;
    m.parts.push_back(next);
    m.bias = input_var(add, "Y");
    m.out = out;
    next = edit.uses.is_private(out) ? edit.uses.reader(out) : -1;
  }
  if (next > i && graph.nodes[next].replica == product.replica && output_var(graph.nodes[next], "Out") >= 0) {
    m.activation = activation_of(find_op(graph.nodes[next].op->type));
    if (on_devices && m.activation != "relu") m.activation.clear();
    if (!m.activation.empty()) {
      m.parts.push_back(next);
      m.out = output_var(graph.nodes[next], "Out");
    }
  }
  return m;
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
bool fits_device(const Graph& graph, const PassContext& context, const FcMatch& m, const GraphNode& fused) {
  const auto runs = [&](const GraphNode& node) { return runs_on_device(graph, node, metas_of(graph, node)); };
  return !context.places[static_cast<size_t>(fused.replica)].on_host() && runs(fused) &&
         std::all_of(m.parts.begin(), m.parts.end(), [&](int part) { return runs(graph.nodes[part]); });
}

bool fuse_forward(Graph& graph, GraphEdit& edit, int i, const PassContext& context) {
  const bool on_devices = !context.places.empty();
  const FcMatch m = match_forward(graph, edit, i, on_devices);
  if (m.parts.size() < 2 || !edit.may_gather(m.parts)) return false;
  const GraphNode& product = graph.nodes[i];
  NodeBuilder node = node_of(graph, "fused_fc", product, m.activation);
  node.in("X", input_var(product, "X")).in("Y", input_var(product, "Y")).in("Bias", m.bias).out("Out", m.out);
  GraphNode fused = node.done();
  if (on_devices && !fits_device(graph, context, m, fused)) return false;
  edit.replace(m.parts, std::move(fused));
  return true;
}

// ---- backward: from the gradient of the product up

struct FcBackwardMatch : FcMatch {
  int act_out = -1, dout = -1, dsum = -1, dbias = -1;  // variables
};

FcBackwardMatch match_backward(const Graph& graph, const GraphEdit& edit, int i) {
  const GraphNode& product = graph.nodes[i];
  FcBackwardMatch m;
  m.parts = {i};
  if (!multiplies(graph, product, "mul_grad") || !is_float(graph, input_var(product, "X"))) return m;
  m.dout = input_var(product, "Out@GRAD");
  if (m.dout < 0) return m;
  const int rank = graph.vars[m.dout].desc.shape.rank();
  int before = edit.uses.is_private(m.dout) ? edit.uses.writer(m.dout) : -1;
  if (before >= 0 && graph.nodes[before].op->type == "elementwise_add_grad") {
    const GraphNode& add = graph.nodes[before];
    const int dout = input_var(add, "Out@GRAD");
    // X is read as Out@GRAD if only its shape is read: see the pass shape_reads.
    const bool fits = output_var(add, "X@GRAD") == m.dout && dout >= 0 && input_var(add, "X") == dout;
    if (!fits || !adds_bias(graph, add, product, rank)) return m;
    m.parts.insert(m.parts.begin(), before);
    m.bias = input_var(add, "Y");
    m.dbias = output_var(add, "Y@GRAD");
    m.dout = dout;
    before = edit.uses.is_private(dout) ? edit.uses.writer(dout) : -1;
  }
  if (before < 0) return m;
  const GraphNode& act = graph.nodes[before];
  const OpDef& def = find_op(act.op->type);
  if (!def.forward() || act.replica != product.replica || output_var(act, "X@GRAD") != m.dout) return m;
  m.activation = activation_of(*def.forward());
  if (m.activation.empty() || !def.tile()->binary) return m;
  m.parts.insert(m.parts.begin(), before);
  m.dsum = m.dout;
  m.act_out = input_var(act, "Out");
  m.dout = input_var(act, "Out@GRAD");
  return m;
}

bool fuse_backward(Graph& graph, GraphEdit& edit, int i) {
  const FcBackwardMatch m = match_backward(graph, edit, i);
  const bool ascending = std::is_sorted(m.parts.begin(), m.parts.end());
  if (m.parts.size() < 2 || !ascending || m.dout < 0 || !edit.may_gather(m.parts)) return false;
  const GraphNode& product = graph.nodes[i];
  NodeBuilder node = node_of(graph, "fused_fc_grad", product, m.activation);
  node.attr("op_role_var", role_vars_of(graph, m.parts))
      .in("X", input_var(product, "X"))
      .in("Y", input_var(product, "Y"))
      .in("Bias", m.bias)
      .in("Out", m.act_out)
      .in("Out@GRAD", m.dout)
      .out("Sum@GRAD", m.dsum)
      .out("X@GRAD", output_var(product, "X@GRAD"))
      .out("Y@GRAD", output_var(product, "Y@GRAD"))
      .out("Bias@GRAD", m.dbias);
  edit.replace(m.parts, node.done());
  return true;
}

int fuse_fc(Graph& graph, const PassContext& context) {
  const bool on_cpu = context.places.empty();
  if (!on_cpu) cast_before_products(graph);
  GraphEdit edit(graph);
  int fused = 0;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    if (edit.gone(i)) continue;
    fused += fuse_forward(graph, edit, i, context) || (on_cpu && fuse_backward(graph, edit, i));
  }
  edit.commit();
  return fused;
}

}  // namespace

const Pass kFuseFc = {.name = "fuse_fc",
                      .what = "products fuse the bias and the activation after them",
                      .tolerance = "bit-equal; on devices 16-bit floats are rounded once",
                      .needs = AB_SWITCH(fuse_elewise_add_act_ops),
                      .in_bodies = true,
                      .on_devices = true,
                      .run = fuse_fc};

}  // namespace anabranch
