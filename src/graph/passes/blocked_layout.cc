// Keeps images in the layout of the kernel library (ops/nn/blocked.h) from one convolution to the next, also through
// normalizations and elementwise ops, instead of reordering them in every convolution.
#include <algorithm>

#include "graph/passes/image_layouts.h"
#include "graph/passes/passes.h"
#include "opdef/fused_ops.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

// With negative padding, which convolutions compute without the kernel library.
bool crops(const ir::Op& op) {
  const auto* paddings = op.has_attr("paddings") ? &op.attr<std::vector<int32_t>>("paddings") : nullptr;
  return paddings && std::any_of(paddings->begin(), paddings->end(), [](int32_t p) { return p < 0; });
}

bool plain_format(const ir::Op& op) {
  if (op.has_attr("data_format") && op.attr<std::string>("data_format").ends_with("C")) return false;
  if (op.has_attr("data_layout") && op.attr<std::string>("data_layout") != "NCHW") return false;
  return !crops(op);
}

bool convolves(const ir::Op& op) { return op.has_attr("groups") && op.type.find("conv2d") != std::string::npos; }

class Blocked final : public ImageLayouts {
 public:
  using ImageLayouts::ImageLayouts;

 private:
  // Of known channels.
  bool may_change(int var) const override {
    const Shape& s = graph_.vars[var].desc.shape;
    return is_float(graph_, var) && s[1] > 0 && s[1] % fused::kMostInBlock == 0;
  }

  std::vector<AlikeImages> alike(const GraphNode& node) const override {
    const OpDef& def = find_op(node.op->type);
    std::vector<AlikeImages> found;
    if (std::vector<int> vars = all_of(node); def.tile() && of_one_shape(vars)) found.push_back({.vars = vars});
    if (!found.empty() || !plain_format(*node.op) || !fills_blocks(node)) return found;
    for (const ImageGroup& rule : def.images()) {
      const auto vars = in_slots(node, rule.slots);
      if (!all_may(vars) || !along_channels(node, rule, vars)) continue;
      found.push_back({.vars = vars, .saves = convolves(*node.op) ? std::ssize(vars) : 0, .attr = rule.attr});
    }
    return found;
  }

  // Variables that a node reads or writes.
  static std::vector<int> all_of(const GraphNode& node) {
    std::vector<int> vars;
    for (const int v : node.ins) {
      const auto& shapes = node.only_shapes;
      if (v >= 0 && std::find(shapes.begin(), shapes.end(), v) == shapes.end()) vars.push_back(v);
    }
    std::copy_if(node.outs.begin(), node.outs.end(), std::back_inserter(vars), [](int v) { return v >= 0; });
    return vars;
  }

  bool all_may(const std::vector<int>& vars) const {
    return !vars.empty() && std::all_of(vars.begin(), vars.end(), [&](int v) { return may(v); });
  }
  const Shape& shape(int var) const { return graph_.vars[var].desc.shape; }
  bool of_one_shape(const std::vector<int>& vars) const {
    return all_may(vars) && std::all_of(vars.begin(), vars.end(), [&](int v) { return shape(v) == shape(vars[0]); });
  }

  // Whether each group of a convolution has whole blocks of channels, or one channel.
  bool fills_blocks(const GraphNode& node) const {
    if (!convolves(*node.op)) return true;
    const auto groups = node.op->attr<int32_t>("groups");
    if (groups == 1) return true;
    const auto filters = in_slots(node, {"Filter"});
    return filters.size() == 1 && shape(filters[0])[0] == groups && shape(filters[0])[1] == 1;
  }

  // An op with an axis must work along that of the channels; its other operands then have one number per channel.
  bool along_channels(const GraphNode& node, const ImageGroup& rule, const std::vector<int>& vars) const {
    if (!node.op->has_attr("axis")) return true;
    if (const auto axis = node.op->attr<int32_t>("axis"); axis != 1 && axis != -3) return false;
    const auto fits = [&](const std::vector<ir::Slot>& slots, const std::vector<int>& ids) {
      size_t at = 0;
      for (const ir::Slot& slot : slots) {
        const bool image = std::find(rule.slots.begin(), rule.slots.end(), slot.name) != rule.slots.end();
        for (size_t k = 0; k < slot.args.size(); ++k, ++at) {
          if (!image && ids[at] >= 0 && !(shape(ids[at]) == Shape{shape(vars[0])[1]})) return false;
        }
      }
      return true;
    };
    return fits(node.op->inputs, node.ins) && fits(node.op->outputs, node.outs);
  }

  int64_t price(int) const override { return 1; }
  void tell(ir::Op& op, const AlikeImages& images) const override { op.attrs[images.attr] = true; }
  GraphNode reorder(const GraphNode& next_to, int from, int to, bool to_blocked) const override {
    NodeBuilder node(graph_, "reorder_channels", next_to);
    return node.attr("to_blocked", to_blocked).in("X", from).out("Out", to).done();
  }
};

int blocked_layout(Graph& graph, const PassContext&) { return Blocked(graph).run(); }

}  // namespace

const Pass kBlockedLayout = {.name = "blocked_layout",
                             .what = "keeps images between convolutions in the layout of the convolution kernels",
                             .tolerance = "sums over the pixels of a channel in a different order: 1e-5 of their size",
                             .run = blocked_layout};

}  // namespace anabranch
