// raw_gradients: on devices a fused update reads gradients as the backward part computes them: in 16 bits, if only a
// cast to float32 is between, and before the division by the loss scale. This saves a pass over all gradients before
// the update. An op is kept if its result is fetched, or if other nodes read or write it; so is an op whose operand is
// written again before the update.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/counted.h"
#include "graph/edit.h"
#include "graph/on_device.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

constexpr const char *kGrad = "Grad", *kScale = "Scale", *kScaleOf = "scale_of";

// Variables that an update reads instead of a gradient, and the nodes that become unnecessary.
struct Raw {
  int grad, scale = -1;
  int division = -1, cast = -1;
};

class Taker {
 public:
  Taker(Graph& graph, const PassContext& context) : graph_(graph), edit_(graph), context_(context) {}

  int run() {
    int taken = 0;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (takes_raw(graph_.nodes[i])) taken += fuse(i);
    }
    edit_.commit();
    if (context_.notes && taken) {
      context_.notes->push_back(
          fmt::format("updates do {} and {}", counted(casts_, "cast"), counted(divisions_, "division")));
    }
    return taken;
  }

 private:
  bool runs(const GraphNode& node) const {
    return !context_.places[static_cast<size_t>(node.replica)].on_host() &&
           runs_on_device(graph_, node, metas_of(graph_, node));
  }

  bool takes_raw(const GraphNode& node) const {
    const OpDef& def = find_op(node.op->type);
    return def.find_attr(kScaleOf) && def.find_input(kScale) && input_vars(node, kScale).empty() && runs(node);
  }

  // The node of this type that computes v only for a slot of the node `reader`; -1: there is none.
  int maker(const char* type, int v, int reader, const char* slot) const {
    if (!edit_.uses.is_private(v) || edit_.uses.reader(v) != reader) return -1;
    const GraphNode& node = graph_.nodes[reader];
    const auto there = input_vars(node, slot);
    if (std::count(node.ins.begin(), node.ins.end(), v) != std::count(there.begin(), there.end(), v)) return -1;
    const int at = edit_.uses.writer(v);
    const GraphNode& made_by = graph_.nodes[at];
    const bool fits = at < reader && made_by.op->type == type && made_by.replica == node.replica && runs(made_by);
    return fits ? at : -1;
  }

  // v still holds at `to` the value it had at `from`, also while that node runs.
  bool stays(int v, int from, int to) const {
    const auto& writers = edit_.uses.writers(v);
    return std::none_of(writers.begin(), writers.end(), [&](int w) { return w > from && w <= to; });
  }

  Raw raw_of(int gradient, int update) const {
    Raw raw{gradient};
    if (const int at = maker("elementwise_div", gradient, update, kGrad); at >= 0) {
      const int x = input_var(graph_.nodes[at], "X"), y = input_var(graph_.nodes[at], "Y");
      const bool by_number = is_float(graph_, x) && is_float(graph_, y) && graph_.vars[y].desc.shape == Shape{1};
      if (by_number && stays(x, at, update) && stays(y, at, update)) raw = {x, y, at};
    }
    const bool divided = raw.division >= 0;
    const int at = maker("cast", raw.grad, divided ? raw.division : update, divided ? "X" : kGrad);
    if (at < 0 || !is_float(graph_, raw.grad)) return raw;
    const int x = input_var(graph_.nodes[at], "X");
    const DType from = graph_.vars[x].desc.dtype;
    if ((from == DType::kFloat16 || from == DType::kBFloat16) && stays(x, at, update)) {
      raw.grad = x;
      raw.cast = at;
    }
    return raw;
  }

  GraphNode rebuilt(const GraphNode& node, const std::vector<Raw>& raws) const {
    NodeBuilder builder(graph_, node.op->type, node);
    builder.copy_all();
    for (const ir::Slot& s : node.op->inputs) {
      const auto vars = input_vars(node, s.name);
      if (s.name != kGrad) builder.in(s.name, {vars.begin(), vars.end()});
    }
    for (const ir::Slot& s : node.op->outputs) {
      const auto vars = output_vars(node, s.name);
      builder.out(s.name, {vars.begin(), vars.end()});
    }
    std::vector<int> grads, scales;
    std::vector<int32_t> scale_of;
    for (const Raw& raw : raws) {
      grads.push_back(raw.grad);
      if (raw.scale >= 0 && !std::count(scales.begin(), scales.end(), raw.scale)) scales.push_back(raw.scale);
      const auto at = std::find(scales.begin(), scales.end(), raw.scale);
      scale_of.push_back(raw.scale < 0 ? -1 : static_cast<int32_t>(at - scales.begin()));
    }
    return builder.in(kGrad, std::move(grads)).in(kScale, std::move(scales)).attr(kScaleOf, std::move(scale_of)).done();
  }

  // Number of gradients that the update reads unconverted.
  int fuse(int update) {
    const GraphNode& node = graph_.nodes[update];
    std::vector<Raw> raws;
    std::set<int> divisions, casts;
    for (const int gradient : input_vars(node, kGrad)) {
      const Raw& raw = raws.emplace_back(raw_of(gradient, update));
      if (raw.division >= 0) divisions.insert(raw.division);
      if (raw.cast >= 0) casts.insert(raw.cast);
    }
    if (divisions.empty() && casts.empty()) return 0;
    GraphNode fresh = rebuilt(node, raws);
    if (!runs(fresh)) return 0;
    fresh.tokens = node.tokens;
    fresh.parts = node.parts;
    for (const auto& gone : {divisions, casts}) {
      for (const int at : gone) {
        const GraphNode& part = graph_.nodes[at];
        fresh.tokens.insert(fresh.tokens.end(), part.tokens.begin(), part.tokens.end());
        fresh.parts.push_back({part.index, part.op});
        edit_.remove(at);
      }
    }
    edit_.put(update, std::move(fresh));
    divisions_ += divisions.size();
    casts_ += casts.size();
    return static_cast<int>(
        std::count_if(raws.begin(), raws.end(), [](const Raw& raw) { return raw.division >= 0 || raw.cast >= 0; }));
  }

  Graph& graph_;
  GraphEdit edit_;
  const PassContext& context_;
  size_t divisions_ = 0, casts_ = 0;
};

int raw_gradients(Graph& graph, const PassContext& context) { return Taker(graph, context).run(); }

}  // namespace

const Pass kRawGradients = {
    .name = "raw_gradients",
    .what = "converts 16-bit gradients to float32 in the updates, which also divide them by the loss scale",
    .tolerance = "bit-equal",
    .needs = AB_SWITCH(fuse_all_optimizer_ops),
    .on_devices = true,
    .skip = skip_on_cpu,
    .run = raw_gradients};

}  // namespace anabranch
