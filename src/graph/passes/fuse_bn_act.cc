// batch_norm and the relu after it become fused_batch_norm_act, and their gradients fused_batch_norm_act_grad; on
// devices also with an elementwise_add of equal shapes between them, as in a residual block, and with the sum of the
// gradients that flow back to it. An intermediate value that is fetched, or that other nodes read, keeps the ops
// separate. On devices so do the cases that the library computes: channels that are not last, and statistics other than
// those of the batch.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "graph/edit.h"
#include "graph/on_device.h"
#include "graph/passes/passes.h"
#include "graph/passes/row_sources.h"

namespace anabranch {
namespace {

class BnAct {
 public:
  BnAct(Graph& graph, const PassContext& context) : graph_(graph), edit_(graph), rows_(graph), context_(context) {}

  int run() {
    int fused = 0;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (!edit_.gone(i)) fused += forward(i) || backward(i);
    }
    edit_.commit();
    if (context_.notes) note();
    return fused;
  }

 private:
  bool on_device(const GraphNode& node) const {
    return !context_.places.empty() && !context_.places[static_cast<size_t>(node.replica)].on_host();
  }
  bool runs(const GraphNode& node) const { return runs_on_device(graph_, node, metas_of(graph_, node)); }

  // The normalization as another op, with another variable in one of its slots.
  NodeBuilder retyped(const char* type, const GraphNode& norm, std::string_view slot, int var, bool bias = true) const {
    NodeBuilder node(graph_, type, norm);
    node.copy_all();
    if (on_device(norm) && graph_.vars[input_var(norm, "X")].desc.shape.rank() == 2) node.attr("matrix", true);
    const auto vars = [&](const ir::Slot& s, std::span<const int> now) {
      return s.name == slot ? std::vector<int>{var} : std::vector<int>(now.begin(), now.end());
    };
    for (const ir::Slot& s : norm.op->inputs) {
      if (bias || s.name != "Bias") node.in(s.name, vars(s, input_vars(norm, s.name)));
    }
    for (const ir::Slot& s : norm.op->outputs) node.out(s.name, vars(s, output_vars(norm, s.name)));
    return node;
  }

  // The nodes belong to one replica, use the intermediate values exclusively, and can all run at the first one's
  // position.
  bool join(const std::vector<int>& parts, std::initializer_list<int> between) const {
    const auto fits = [&](int i) {
      const GraphNode& node = graph_.nodes[i];
      return !edit_.gone(i) && node.replica == graph_.nodes[parts[0]].replica && is_plain(node);
    };
    return std::all_of(between.begin(), between.end(), [&](int v) { return edit_.uses.is_private(v); }) &&
           std::adjacent_find(parts.begin(), parts.end(), std::greater_equal<>()) == parts.end() &&
           std::all_of(parts.begin(), parts.end(), fits) && edit_.may_gather(parts);
  }

  // The nodes' place has kernels for the fused op. Bodies of loops always run on the CPU, and statistics of all
  // replicas are left to batch_norm.
  bool has_kernels(const std::vector<int>& parts, const GraphNode& fused, int between) const {
    if (!on_device(fused)) return is_float(graph_, between);
    const bool of_all_replicas = context_.build.sync_batch_norm && graph_.replicas > 1;
    return context_.block == 0 && !of_all_replicas && runs(fused) &&
           std::all_of(parts.begin(), parts.end(), [&](int i) { return runs(graph_.nodes[i]); });
  }

  bool put(const std::vector<int>& parts, NodeBuilder fused, int between) {
    if (auto pairs = role_vars_of(graph_, parts); !pairs.empty()) fused.attr("op_role_var", std::move(pairs));
    GraphNode node = fused.done();
    if (!has_kernels(parts, node, between)) return false;
    edit_.replace(parts, std::move(node));
    return true;
  }

  bool forward(int i) {
    const GraphNode& norm = graph_.nodes[i];
    const int y = output_var(norm, "Y");
    if (norm.op->type != "batch_norm" || y < 0) return false;
    if (on_device(norm) && forward_added(i, y)) return true;
    const int next = edit_.uses.reader(y), out = result_of("relu", next);
    return out >= 0 && join({i, next}, {y}) && put({i, next}, retyped("fused_batch_norm_act", norm, "Y", out), y);
  }

  int result_of(const char* type, int at) const {
    return at >= 0 && graph_.nodes[at].op->type == type ? output_var(graph_.nodes[at], "Out") : -1;
  }

  // The result of the `i`th node, y, is added to z, and relu follows. A gradient that also reads y does so for its
  // shape, which Out@GRAD has as well.
  bool forward_added(int i, int y) {
    int add = -1, grad = -1;
    for (const int r : edit_.uses.readers(y)) {
      (graph_.nodes[r].op->type == "elementwise_add_grad" && grad < 0 ? grad : add) = r;
    }
    const int sum = result_of("elementwise_add", add);
    if (sum < 0 || edit_.uses.readers(y).size() > (grad < 0 ? 1 : 2) || !edit_.uses.is_inner(y)) return false;
    const int left = input_var(graph_.nodes[add], "X"), right = input_var(graph_.nodes[add], "Y");
    const int z = left == y ? right : left, next = edit_.uses.reader(sum), out = result_of("relu", next);
    if (out < 0 || z < 0 || z == y || !rows_.alike(y, z) || !rows_.alike(y, sum) || !join({i, add, next}, {sum}))
      return false;
    const int dsum = grad < 0 ? -1 : input_var(graph_.nodes[grad], "Out@GRAD");
    if (grad >= 0 && !is_gradient_of(grad, left, right)) return false;
    NodeBuilder fused = retyped("fused_batch_norm_act", graph_.nodes[i], "Y", out);
    if (!put({i, add, next}, fused.in("Z", z), y)) return false;
    if (grad >= 0 && !edit_.gone(grad)) read_instead(graph_, graph_.nodes[grad], y, dsum);
    ++sums_;
    return true;
  }

  // If it does not read an operand, it reads Out@GRAD instead.
  bool is_gradient_of(int grad, int left, int right) const {
    const GraphNode& node = graph_.nodes[grad];
    const int dsum = input_var(node, "Out@GRAD"), x = input_var(node, "X"), y = input_var(node, "Y");
    if (dsum < 0 || (x != left && x != dsum) || (y != right && y != dsum) || !is_plain(node)) return false;
    const ir::Var &v = graph_.vars[dsum].desc, &w = graph_.vars[left].desc;
    return dsum != left && dsum != right && v.kind == w.kind && v.dtype == w.dtype && v.shape == w.shape;
  }

  bool backward(int i) {
    const GraphNode& first = graph_.nodes[i];
    if (first.op->type == "sum") return backward_of_two(i);
    if (first.op->type != "relu_grad") return false;
    const int out = input_var(first, "Out"), dout = input_var(first, "Out@GRAD"), dy = output_var(first, "X@GRAD");
    const int next = dy < 0 ? -1 : edit_.uses.reader(dy);
    if (out < 0 || dout < 0 || next < 0) return false;
    const GraphNode& norm = graph_.nodes[next];
    if (norm.op->type == "elementwise_add_grad") return backward_added({i}, dout, -1);
    if (norm.op->type != "batch_norm_grad" || input_var(norm, "Y@GRAD") != dy || !join({i, next}, {dy})) return false;
    const bool by_x = on_device(norm) && computes_again(norm, next, out), bias = by_x || !on_device(norm);
    NodeBuilder fused = retyped("fused_batch_norm_act_grad", norm, "Y@GRAD", dout, bias);
    if (!put({i, next}, fused.in("Y", out), dy)) return false;
    if (on_device(norm)) ++(by_x ? from_x_ : from_y_);
    return true;
  }

  // The `i`th node adds the gradients of two readers of relu's output.
  bool backward_of_two(int i) {
    const auto both = input_vars(graph_.nodes[i], "X");
    const int dout = output_var(graph_.nodes[i], "Out"), next = dout < 0 ? -1 : edit_.uses.reader(dout);
    if (both.size() != 2 || next < 0 || graph_.nodes[next].op->type != "relu_grad") return false;
    const auto fits = [&](int v) {
      if (v < 0) return false;
      const ir::Var &part = graph_.vars[v].desc, &whole = graph_.vars[dout].desc;
      return part.kind == VarKind::kLoDTensor && part.dtype == whole.dtype && part.shape == whole.shape;
    };
    return input_var(graph_.nodes[next], "Out@GRAD") == dout && edit_.uses.is_private(dout) && fits(both[0]) &&
           fits(both[1]) && backward_added({i, next}, both[0], both[1]);
  }

  // The gradients of relu - the last of the parts - and of y + z. Both operands have the same gradient, which is
  // written if that of z is needed.
  bool backward_added(std::vector<int> parts, int dout, int more) {
    const GraphNode& act = graph_.nodes[parts.back()];
    const int out = input_var(act, "Out"), dsum = output_var(act, "X@GRAD");
    const int add = out < 0 || dsum < 0 ? -1 : edit_.uses.reader(dsum);
    if (add < 0 || !on_device(act) || graph_.nodes[add].op->type != "elementwise_add_grad") return false;
    const GraphNode& node = graph_.nodes[add];
    const auto whole = [&](const char* slot) {
      const int v = input_var(node, slot);
      return v >= 0 && (v == dsum || rows_.alike(v, out));
    };
    if (input_var(node, "Out@GRAD") != dsum || !whole("X") || !whole("Y")) return false;
    parts.push_back(add);
    const int dx = output_var(node, "X@GRAD"), dy = output_var(node, "Y@GRAD");
    return normalized(parts, dsum, dx, dy, dout, more) || normalized(parts, dsum, dy, dx, dout, more);
  }

  // dy belongs to the output of a batch_norm, dz to the other operand.
  bool normalized(std::vector<int> parts, int dsum, int dy, int dz, int dout, int more) {
    const int next = dy < 0 ? -1 : edit_.uses.reader(dy);
    if (next < 0 || graph_.nodes[next].op->type != "batch_norm_grad" || (dz < 0 && more >= 0)) return false;
    const GraphNode& norm = graph_.nodes[next];
    const int out = input_var(graph_.nodes[parts[parts.size() - 2]], "Out");
    parts.push_back(next);
    if (input_var(norm, "Y@GRAD") != dy || !join(parts, {dsum, dy})) return false;
    NodeBuilder fused = retyped("fused_batch_norm_act_grad", norm, "Y@GRAD", dout, false);
    if (!put(parts, fused.in("Y", out).in("MoreY@GRAD", more).out("Z@GRAD", dz), dy)) return false;
    dz < 0 ? ++from_y_ : ++sum_grads_;
    two_ += more >= 0;
    return true;
  }

  // The gradient's node, number `at`, reads the forward op's arguments of that time, and the forward op is a device
  // kernel with the same arithmetic. So Bias determines where Y > 0; otherwise Y itself is read.
  bool computes_again(const GraphNode& grad, int at, int out) const {
    const int relu = edit_.uses.writer(out);
    if (relu < 0 || graph_.nodes[relu].op->type != "relu") return false;
    const int y = input_var(graph_.nodes[relu], "X"), from = y < 0 ? -1 : edit_.uses.writer(y);
    if (from < 0) return false;
    const GraphNode& norm = graph_.nodes[from];  // may include the relu already
    if (norm.op->type != "batch_norm" && norm.op->type != "fused_batch_norm_act") return false;
    const auto as_then = [&](const char* slot, int var) {
      const int v = input_var(grad, slot);
      if (v < 0 || v != var) return false;
      const auto& writers = edit_.uses.writers(v);
      return std::none_of(writers.begin(), writers.end(), [&](int w) { return w > from && w < at; });
    };
    const auto same = [&](const char* slot) { return as_then(slot, input_var(norm, slot)); };
    return same("X") && same("Scale") && same("Bias") && as_then("SavedMean", output_var(norm, "SavedMean")) &&
           as_then("SavedVariance", output_var(norm, "SavedVariance")) &&
           runs(retyped("fused_batch_norm_act", norm, "Y", out).done());
  }

  void note() const {
    if (from_x_ + from_y_ > 0) {
      context_.notes->push_back(
          fmt::format("gradients of relu: {} from X, {} from Y, which is read again", from_x_, from_y_));
    }
    if (sums_ + sum_grads_ > 0) {
      context_.notes->push_back(fmt::format(
          "with a sum before relu: {} forward, {} backward, {} of these with two readers", sums_, sum_grads_, two_));
    }
  }

  Graph& graph_;
  GraphEdit edit_;
  const RowSources rows_;
  const PassContext& context_;
  // on devices
  int from_x_ = 0, from_y_ = 0;  // gradients
  int sums_ = 0, sum_grads_ = 0, two_ = 0;
};

int fuse_bn_act(Graph& graph, const PassContext& context) { return BnAct(graph, context).run(); }

}  // namespace

const Pass kFuseBnAct = {
    .name = "fuse_bn_act",
    .what = "fuses batch_norm with the relu after it and, on devices, with the addition between the two",
    .tolerance = "bit-equal",
    .needs = AB_SWITCH(fuse_bn_act_ops),
    .in_bodies = true,
    .on_devices = true,
    .run = fuse_bn_act};

}  // namespace anabranch
