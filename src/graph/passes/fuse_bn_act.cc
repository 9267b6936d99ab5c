// batch_norm and the relu after it become fused_batch_norm_act, and their gradients fused_batch_norm_act_grad. A
// normalised value that is fetched, or that somebody else reads, keeps the ops apart. On devices so does what the
// library computes: channels that do not lie last, and statistics that are not those of the batch.
#include <fmt/format.h>

#include <algorithm>

#include "graph/edit.h"
#include "graph/on_device.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

class BnAct {
 public:
  BnAct(Graph& graph, const PassContext& context) : graph_(graph), edit_(graph), context_(context) {}

  int run() {
    int fused = 0;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (!edit_.gone(i)) fused += forward(i) || backward(i);
    }
    edit_.commit();
    if (context_.notes && from_x_ + from_y_ > 0) {
      context_.notes->push_back(
          fmt::format("{} gradients of relu by X, {} by Y, which is read again", from_x_, from_y_));
    }
    return fused;
  }

 private:
  bool on_device(const GraphNode& node) const {
    return !context_.places.empty() && !context_.places[static_cast<size_t>(node.replica)].on_host();
  }
  bool runs(const GraphNode& node) const { return runs_on_device(graph_, node, metas_of(graph_, node)); }

  // The normalisation as another op, with another variable in one of its slots.
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

  // Both nodes are of one replica, the value between them is theirs alone, and the second can run in the first's place.
  bool join(int first, int second, int between) const {
    return edit_.uses.is_private(between) && first < second && !edit_.gone(second) &&
           graph_.nodes[first].replica == graph_.nodes[second].replica && is_plain(graph_.nodes[first]) &&
           is_plain(graph_.nodes[second]) && edit_.may_gather({first, second});
  }

  // The place of the nodes has kernels for what would stand for them. The CPU runs bodies of loops in any case, and
  // statistics of all replicas are a matter of batch_norm.
  bool has_kernels(const GraphNode& first, const GraphNode& second, const GraphNode& fused, int between) const {
    if (!on_device(fused)) return is_float(graph_, between);
    const bool of_all_replicas = context_.build.sync_batch_norm && graph_.replicas > 1;
    return context_.block == 0 && !of_all_replicas && runs(first) && runs(second) && runs(fused);
  }

  bool forward(int i) {
    const GraphNode& norm = graph_.nodes[i];
    const int y = output_var(norm, "Y");
    if (norm.op->type != "batch_norm" || y < 0) return false;
    const int next = edit_.uses.reader(y);
    if (next < 0 || graph_.nodes[next].op->type != "relu") return false;
    const int out = output_var(graph_.nodes[next], "Out");
    if (out < 0 || !join(i, next, y)) return false;
    GraphNode fused = retyped("fused_batch_norm_act", norm, "Y", out).done();
    if (!has_kernels(norm, graph_.nodes[next], fused, y)) return false;
    edit_.replace({i, next}, std::move(fused));
    return true;
  }

  bool backward(int i) {
    const GraphNode& act = graph_.nodes[i];
    if (act.op->type != "relu_grad") return false;
    const int out = input_var(act, "Out"), dout = input_var(act, "Out@GRAD"), dy = output_var(act, "X@GRAD");
    const int next = dy < 0 ? -1 : edit_.uses.reader(dy);
    if (out < 0 || dout < 0 || next < 0 || graph_.nodes[next].op->type != "batch_norm_grad") return false;
    const GraphNode& norm = graph_.nodes[next];
    if (input_var(norm, "Y@GRAD") != dy || !join(i, next, dy)) return false;
    const bool by_x = on_device(norm) && computes_again(norm, next, out), bias = by_x || !on_device(norm);
    GraphNode fused = retyped("fused_batch_norm_act_grad", norm, "Y@GRAD", dout, bias).in("Y", out).done();
    if (!has_kernels(act, norm, fused, dy)) return false;
    if (on_device(norm)) ++(by_x ? from_x_ : from_y_);
    edit_.replace({i, next}, std::move(fused));
    return true;
  }

  // The gradient's node, the `at`th, reads what the forward op read and made, as it was then, and the forward op is one
  // of a device's kernels that has the same arithmetic. So Bias tells where Y > 0; otherwise Y itself is read.
  bool computes_again(const GraphNode& grad, int at, int out) const {
    const int relu = edit_.uses.writer(out);
    if (relu < 0 || graph_.nodes[relu].op->type != "relu") return false;
    const int y = input_var(graph_.nodes[relu], "X"), from = y < 0 ? -1 : edit_.uses.writer(y);
    if (from < 0) return false;
    const GraphNode& norm = graph_.nodes[from];  // may have taken in the relu already
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

  Graph& graph_;
  GraphEdit edit_;
  const PassContext& context_;
  int from_x_ = 0, from_y_ = 0;  // gradients on devices
};

int run(Graph& graph, const PassContext& context) { return BnAct(graph, context).run(); }

}  // namespace

const Pass kFuseBnAct = {.name = "fuse_bn_act",
                         .what = "batch_norm takes in the relu after it",
                         .tolerance = "bit-equal",
                         .needs = AB_SWITCH(fuse_bn_act_ops),
                         .in_bodies = true,
                         .on_devices = true,
                         .run = run};

}  // namespace anabranch
