// Images that convolutions hand to each other, through normalisations and elementwise ops, keep the layout that the
// kernel library computes in (ops/nn/blocked.h) instead of being reordered in every convolution. Images that must agree
// form a class; a class changes its layout when that saves more reorders than the ops that know only the plain layout
// need before and after them.
#include <algorithm>
#include <numeric>

#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "opdef/fused_ops.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool plain_format(const ir::Op& op) {
  for (const char* name : {"data_format", "data_layout"}) {
    if (op.has_attr(name) && op.attr<std::string>(name).ends_with("C")) return false;
  }
  return !op.has_attr("groups") || op.attr<int32_t>("groups") == 1;
}

bool has(const std::vector<int>& vars, int var) { return std::find(vars.begin(), vars.end(), var) != vars.end(); }

class Layouts {
 public:
  explicit Layouts(Graph& graph) : graph_(graph), class_(graph.vars.size()), may_(graph.vars.size(), 0) {
    std::iota(class_.begin(), class_.end(), 0);
  }

  int run() {
    find_images();
    for (const GraphNode& node : graph_.nodes) join(node);
    choose();
    return chosen_ ? rewrite() : 0;
  }

 private:
  // Temporaries of known channels that exactly one node writes, and nobody outside looks at.
  void find_images() {
    const Uses uses(graph_);
    std::vector<char> seen_elsewhere(graph_.vars.size(), 0);
    for (const GraphNode& node : graph_.nodes) {
      for (int v : node.more_reads) seen_elsewhere[v] = 1;
      for (int v : node.more_writes) seen_elsewhere[v] = 1;
    }
    for (size_t v = 0; v < graph_.vars.size(); ++v) {
      const GraphVar& var = graph_.vars[v];
      const Shape& s = var.desc.shape;
      const int id = static_cast<int>(v);
      may_[v] = uses.is_inner(id) && is_float(graph_, id) && !seen_elsewhere[v] && !var.dynamic &&
                var.same_buffer_as < 0 && s.rank() == 4 && s[1] > 0 && s[1] % fused::kMostInBlock == 0;
    }
  }

  // The variables of these slots, apart from those of which only the shape is read.
  std::vector<int> members(const GraphNode& node, const ImageGroup& rule) const {
    std::vector<int> found;
    const auto collect = [&](const std::vector<ir::Slot>& slots, const std::vector<int>& ids, bool inputs) {
      size_t at = 0;
      for (const auto& slot : slots) {
        const bool mine = std::find(rule.slots.begin(), rule.slots.end(), slot.name) != rule.slots.end();
        for (size_t k = 0; k < slot.args.size(); ++k, ++at) {
          if (mine && ids[at] >= 0 && !(inputs && has(node.only_shapes, ids[at]))) found.push_back(ids[at]);
        }
      }
    };
    collect(node.op->inputs, node.ins, true);
    collect(node.op->outputs, node.outs, false);
    return found;
  }

  // Whether the op can take all images of the rule in either layout.
  bool obeys(const GraphNode& node, const ImageGroup& rule, const std::vector<int>& vars) const {
    if (vars.empty() || !plain_format(*node.op)) return false;
    for (int v : vars) {
      const bool alike = !rule.attr.empty() || graph_.vars[v].desc.shape == graph_.vars[vars[0]].desc.shape;
      if (!may_[v] || !alike) return false;
    }
    return true;
  }

  template <class Fn> void each_rule(const GraphNode& node, Fn&& fn) const {
    for (const ImageGroup& rule : find_op(node.op->type).images()) {
      const auto vars = members(node, rule);
      if (obeys(node, rule, vars)) fn(rule, vars);
    }
  }

  int root(int var) {
    while (class_[var] != var) var = class_[var] = class_[class_[var]];
    return var;
  }

  void join(const GraphNode& node) {
    each_rule(node, [&](const ImageGroup&, const std::vector<int>& vars) {
      for (int v : vars) class_[root(v)] = root(vars[0]);
    });
  }

  // Images that this node touches in the plain layout only.
  std::vector<int> plain_uses(const GraphNode& node) const {
    std::vector<int> known, plain;
    each_rule(node, [&](const ImageGroup&, const std::vector<int>& vars) {
      known.insert(known.end(), vars.begin(), vars.end());
    });
    for (const auto* ids : {&node.ins, &node.outs}) {
      for (int v : *ids) {
        if (v >= 0 && may_[v] && !has(known, v) && !has(node.only_shapes, v) && !has(plain, v)) plain.push_back(v);
      }
    }
    return plain;
  }

  void choose() {
    std::vector<int> saved(graph_.vars.size(), 0);  // reorders, of each class
    std::vector<char> read_plain(graph_.vars.size(), 0);
    for (const GraphNode& node : graph_.nodes) {
      each_rule(node, [&](const ImageGroup&, const std::vector<int>& vars) {
        if (node.op->type.starts_with("conv")) saved[root(vars[0])] += static_cast<int>(vars.size());
      });
      for (int v : plain_uses(node)) {
        const bool first = has(node.outs, v) || !read_plain[v];  // readers share what one of them needed
        saved[root(v)] -= first;
        read_plain[v] |= !has(node.outs, v);
      }
    }
    blocked_.assign(graph_.vars.size(), 0);
    for (size_t v = 0; v < graph_.vars.size(); ++v) {
      blocked_[v] = may_[v] && saved[root(static_cast<int>(v))] > 0;
      chosen_ |= blocked_[v] != 0;
    }
  }

  int rewrite() {
    plain_.assign(graph_.vars.size(), -1);
    std::vector<GraphNode> before;
    before.swap(graph_.nodes);
    for (GraphNode& node : before) {
      const std::vector<int> plain = plain_uses(node);
      for (int v : plain) {
        if (blocked_[v] && !has(node.outs, v) && plain_[v] < 0) add_reorder(node, v, plain_of(v), false);
      }
      std::vector<int> written;
      for (int v : plain) {
        if (blocked_[v] && has(node.outs, v)) written.push_back(v);
      }
      change(node, plain);
      const GraphNode& done = graph_.nodes.emplace_back(std::move(node));
      for (int v : written) add_reorder(GraphNode(done), plain_of(v), v, true);
    }
    return changes_;
  }

  int plain_of(int v) {
    if (plain_[v] < 0) {
      const GraphVar var = graph_.vars[v];
      plain_[v] = graph_.var(var.name + "@PLAIN", var.replica, var.desc);
      graph_.vars[plain_[v]].produced = true;
    }
    return plain_[v];
  }

  void add_reorder(const GraphNode& beside, int from, int to, bool to_blocked) {
    NodeBuilder node(graph_, "reorder_channels", beside);
    graph_.nodes.push_back(node.attr("to_blocked", to_blocked).in("X", from).out("Out", to).done());
    ++changes_;
  }

  // Tells the op about the layout of its images, or gives it their plain copies.
  void change(GraphNode& node, const std::vector<int>& plain) {
    std::vector<std::string> attrs;
    each_rule(node, [&](const ImageGroup& rule, const std::vector<int>& vars) {
      if (!rule.attr.empty() && blocked_[vars[0]]) attrs.push_back(rule.attr);
    });
    const bool moves = std::any_of(plain.begin(), plain.end(), [&](int v) { return blocked_[v] != 0; });
    if (attrs.empty() && !moves) return;
    auto op = std::make_shared<ir::Op>(*node.op);
    for (const auto& attr : attrs) op->attrs[attr] = true;
    const auto rename = [&](std::vector<ir::Slot>& slots, std::vector<int>& ids) {
      size_t at = 0;
      for (auto& slot : slots) {
        for (auto& arg : slot.args) {
          int& v = ids[at++];
          if (v < 0 || static_cast<size_t>(v) >= blocked_.size() || !blocked_[v] || !has(plain, v)) continue;
          v = plain_of(v);
          arg = graph_.vars[v].name;
        }
      }
    };
    rename(op->inputs, node.ins);
    rename(op->outputs, node.outs);
    node.op = std::move(op);
    ++changes_;
  }

  Graph& graph_;
  std::vector<int> class_;  // union-find over variables
  std::vector<char> may_, blocked_;
  std::vector<int> plain_;  // the plain copy of a variable, -1 when nobody needs one
  bool chosen_ = false;
  int changes_ = 0;
};

int run(Graph& graph, const PassContext&) { return Layouts(graph).run(); }

}  // namespace

const Pass kBlockedLayout = {.name = "blocked_layout",
                             .what = "images between convolutions stay in the layout of the kernels",
                             .tolerance = "sums over the pixels of a channel in another order: 1e-5 of their size",
                             .run = run};

}  // namespace anabranch
