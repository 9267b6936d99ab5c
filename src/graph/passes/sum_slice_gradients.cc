// sum_slice_gradients: the gradient of each slice of a tensor is as large as the tensor, and zero outside of the slice.
// If they are summed, one op adds each part where it belongs instead. Other terms of the sum stay terms.
#include <algorithm>
#include <limits>
#include <optional>

#include "graph/edit.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

using Numbers = std::vector<int32_t>;

// A term of the sum: the gradient of a slice, and where the slice lies; or any tensor, without axes.
struct Term {
  int node = -1, like = -1;  // the gradient op, and the tensor that was sliced; -1: none
  int part = -1;             // what is added
  Numbers axes, starts, ends, strides;
};

bool has_any(const GraphNode& node, std::initializer_list<const char*> slots) {
  return std::any_of(slots.begin(), slots.end(), [&](const char* slot) { return !input_vars(node, slot).empty(); });
}

std::optional<Term> slice_term(const GraphNode& node) {
  if (has_any(node, {"StartsTensor", "StartsTensorList", "EndsTensor", "EndsTensorList", "StridesTensor",
                     "StridesTensorList"})) {
    return std::nullopt;
  }
  Term term{.like = input_var(node, "Input"), .axes = node.op->attr<Numbers>("axes")};
  term.starts = node.op->attr<Numbers>("starts");
  term.ends = node.op->attr<Numbers>("ends");
  term.strides = node.op->type == "slice_grad" ? Numbers(term.axes.size(), 1) : node.op->attr<Numbers>("strides");
  return term;
}

std::optional<Term> crop_term(const Graph& graph, const GraphNode& node) {
  if (has_any(node, {"Offsets", "OffsetsTensor"})) return std::nullopt;
  const Shape& part = graph.vars[input_var(node, "Out@GRAD")].desc.shape;
  Term term{.like = input_var(node, "X"), .starts = node.op->attr<Numbers>("offsets")};
  for (size_t i = 0; i < term.starts.size(); ++i) {
    const int64_t extent = part[static_cast<int>(i)];
    if (extent < 0 && term.starts[i] != 0) return std::nullopt;  // it may end before the tensor
    term.axes.push_back(static_cast<int32_t>(i));
    term.ends.push_back(extent < 0 ? std::numeric_limits<int32_t>::max()
                                   : static_cast<int32_t>(term.starts[i] + extent));
    term.strides.push_back(1);
  }
  return term;
}

class SliceSummer {
 public:
  explicit SliceSummer(Graph& graph) : graph_(graph), edit_(graph) {}

  int run() {
    int changes = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op->type == "sum" && is_plain(graph_.nodes[i])) changes += replace(static_cast<int>(i));
    }
    edit_.commit();
    return changes;
  }

 private:
  // A slice, if only the sum reads its gradient, and what that was computed from is still there; else the value itself.
  Term term_of(int var, int sum) const {
    Term whole{.part = var};
    const int at = edit_.uses.is_private(var) ? edit_.uses.writer(var) : -1;
    if (at < 0 || at >= sum || !is_plain(graph_.nodes[at])) return whole;
    const GraphNode& node = graph_.nodes[at];
    const std::string& type = node.op->type;
    const int part = input_var(node, "Out@GRAD");
    if (part < 0 || node.replica != graph_.nodes[sum].replica || written_between(part, at, sum)) return whole;
    std::optional<Term> term;
    if (type == "slice_grad" || type == "strided_slice_grad") term = slice_term(node);
    if (type == "crop_grad" || type == "crop_tensor_grad") term = crop_term(graph_, node);
    if (!term || term->axes.empty() || term->like < 0 || written_between(term->like, at, sum)) return whole;
    term->node = at;
    term->part = part;
    return *term;
  }

  bool written_between(int var, int from, int to) const {
    const auto& w = edit_.uses.writers(var);
    return std::any_of(w.begin(), w.end(), [&](int at) { return at > from && at < to; });
  }

  bool fits(int var, DType dtype) const {
    const ir::Var& desc = graph_.vars[var].desc;
    return desc.kind == VarKind::kLoDTensor && desc.dtype == dtype;
  }

  bool replace(int at) {
    const GraphNode& sum = graph_.nodes[at];
    const int out = output_var(sum, "Out");
    if (out < 0) return false;
    const DType dtype = graph_.vars[out].desc.dtype;
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return false;
    std::vector<Term> terms;
    int like = -1;
    for (const int v : input_vars(sum, "X")) {
      if (v < 0 || !fits(v, dtype) || graph_.vars[v].name == graph_.vars[out].name) return false;
      terms.push_back(term_of(v, at));
      if (!fits(terms.back().part, dtype)) return false;
      if (like < 0) like = terms.back().like;
    }
    if (like < 0) return false;
    put(at, out, like, terms);
    return true;
  }

  void put(int at, int out, int like, const std::vector<Term>& terms) {
    std::vector<int> xs;
    Numbers counts, axes, starts, ends, strides;
    const auto append = [](Numbers* all, const Numbers& more) { all->insert(all->end(), more.begin(), more.end()); };
    for (const Term& t : terms) {
      xs.push_back(t.part);
      counts.push_back(static_cast<int32_t>(t.axes.size()));
      append(&axes, t.axes);
      append(&starts, t.starts);
      append(&ends, t.ends);
      append(&strides, t.strides);
    }
    const GraphNode& sum = graph_.nodes[at];
    NodeBuilder builder(graph_, "sum_slices", sum);
    builder.copy({"op_role_var"}).in("X", xs).in("Like", like).out("Out", out);
    builder.attr("counts", counts).attr("axes", axes).attr("starts", starts).attr("ends", ends);
    GraphNode node = builder.attr("strides", strides).done();
    node.tokens = sum.tokens;
    const bool shape_only =
        std::all_of(terms.begin(), terms.end(), [&](const Term& t) { return knows_shape(t, like); });
    if (shape_only && std::count(xs.begin(), xs.end(), like) == 0) node.only_shapes.push_back(like);
    for (const Term& t : terms) {
      if (t.node < 0) continue;
      node.parts.push_back({graph_.nodes[t.node].index, graph_.nodes[t.node].op});
      edit_.remove(t.node);
    }
    node.parts.push_back({sum.index, sum.op});
    edit_.put(at, std::move(node));
  }

  // The gradient op reads only the shape of the tensor.
  bool knows_shape(const Term& t, int like) const {
    if (t.node < 0 || t.like != like) return true;
    const auto& shapes = graph_.nodes[t.node].only_shapes;
    return std::count(shapes.begin(), shapes.end(), like) != 0;
  }

  Graph& graph_;
  GraphEdit edit_;
};

int sum_slice_gradients(Graph& graph, const PassContext&) { return SliceSummer(graph).run(); }

}  // namespace

const Pass kSumSliceGradients = {.name = "sum_slice_gradients",
                                 .what = "adds the gradients of the slices of a tensor where they belong",
                                 .tolerance = "equal; a sum of negative zeros is a positive one",
                                 .in_bodies = true,
                                 .run = sum_slice_gradients};

}  // namespace anabranch
