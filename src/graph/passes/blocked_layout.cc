// Images that convolutions hand to each other, through normalisations and elementwise ops, keep the layout that the
// kernel library computes in (ops/nn/blocked.h) instead of being reordered in every convolution.
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
  for (const char* name : {"data_format", "data_layout"}) {
    if (op.has_attr(name) && op.attr<std::string>(name).ends_with("C")) return false;
  }
  return (!op.has_attr("groups") || op.attr<int32_t>("groups") == 1) && !crops(op);
}

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
    std::vector<AlikeImages> found;
    if (!plain_format(*node.op)) return found;
    const bool convolves = node.op->type.starts_with("conv");
    for (const ImageGroup& rule : find_op(node.op->type).images()) {
      const auto vars = in_slots(node, rule.slots);
      const int64_t saves = convolves ? std::ssize(vars) : 0;
      if (obeys(rule, vars)) found.push_back({.vars = vars, .saves = saves, .attr = rule.attr});
    }
    return found;
  }

  // Whether the op can take all images of the rule in either layout.
  bool obeys(const ImageGroup& rule, const std::vector<int>& vars) const {
    return !vars.empty() && std::all_of(vars.begin(), vars.end(), [&](int v) {
      return may(v) && (!rule.attr.empty() || graph_.vars[v].desc.shape == graph_.vars[vars[0]].desc.shape);
    });
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
