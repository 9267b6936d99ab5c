// matmul + elementwise_add of a mask + softmax + dropout + matmul become fused_attention, and their gradients
// fused_attention_grad, which reads the probabilities and the dropout mask. Then both fuse transposes that move the
// heads before the rows. A value that other nodes read, or that is fetched, keeps the ops separate.
#include <algorithm>

#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "graph/passes/patterns/dropout.h"
#include "graph/passes/patterns/transposed_heads.h"

namespace anabranch {
namespace {

bool is_type(const GraphNode& node, std::initializer_list<const char*> types) {
  return is_plain(node) && std::any_of(types.begin(), types.end(), [&](const char* t) { return node.op->type == t; });
}

int rank_of(const Graph& graph, int var) { return graph.vars[var].desc.shape.rank(); }

bool same_batches(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i + 2 < a.rank(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

class Attention {
 public:
  Attention(const Graph& graph, GraphEdit& edit) : graph_(graph), edit_(edit) {}

  bool fuse(int first) {
    return match(first) && match_backward() && edit_.may_gather(parts_) && (back_.empty() || edit_.may_gather(back_)) &&
           replace();
  }

 private:
  const GraphNode& node(int i) const { return graph_.nodes[i]; }

  // The next part: the forward op that reads `var` after the last part; -1 if there is none, or it has another type.
  int next(int var, std::initializer_list<const char*> types) const {
    if (!is_float(graph_, var) || !edit_.uses.is_inner(var)) return -1;
    int found = -1;
    for (int r : edit_.uses.readers(var)) {
      if (r <= parts_.back() || edit_.gone(r) || !is_type(node(r), types)) continue;
      if (found >= 0) return -1;
      found = r;
    }
    return found >= 0 && node(found).replica == node(parts_[0]).replica ? found : -1;
  }

  bool match(int first) {
    const GraphNode& scores = node(first);
    if (!is_type(scores, {"matmul"}) || scores.op->attr<bool>("transpose_X") || !scores.op->attr<bool>("transpose_Y") ||
        scores.op->attr<int32_t>("head_number") != 1) {
      return false;
    }
    parts_ = {first};
    q_ = input_var(scores, "X");
    k_ = input_var(scores, "Y");
    int value = output_var(scores, "Out");
    if (!is_float(graph_, q_) || !is_float(graph_, k_) || value < 0 || rank_of(graph_, q_) < 3) return false;
    if (!same_batches(graph_.vars[q_].desc.shape, graph_.vars[k_].desc.shape)) return false;
    scores_ = value;
    if (const int add = next(value, {"elementwise_add"}); add >= 0) value = match_mask(add, value);
    const int softmax = value < 0 ? -1 : next(value, {"softmax"});
    if (softmax < 0) return false;
    const auto axis = node(softmax).op->attr<int32_t>("axis");
    probabilities_ = output_var(node(softmax), "Out");
    if ((axis != -1 && axis != rank_of(graph_, q_) - 1) || probabilities_ < 0) return false;
    parts_.push_back(softmax);
    weights_ = probabilities_;
    if (const int drop = next(probabilities_, {"dropout"}); drop >= 0 && !match_dropout(drop)) return false;
    return match_means();
  }

  // A mask of the scores' rank; -1 for any other layout.
  int match_mask(int add, int value) {
    bias_ = input_var(node(add), "Y");
    const auto axis = node(add).op->attr<int32_t>("axis");
    const bool whole = input_var(node(add), "X") == value && is_float(graph_, bias_) &&
                       rank_of(graph_, bias_) == rank_of(graph_, q_) && (axis == -1 || axis == 0);
    if (!whole) return -1;
    parts_.push_back(add);
    add_ = add;
    return output_var(node(add), "Out");
  }

  bool match_dropout(int drop) {
    if (!draws_anywhere(node(drop))) return false;
    weights_ = output_var(node(drop), "Out");
    mask_ = output_var(node(drop), "Mask");
    parts_.push_back(drop);
    drop_ = drop;
    return weights_ >= 0;
  }

  bool match_means() {
    const int means = next(weights_, {"matmul", "bmm"});
    if (means < 0 || input_var(node(means), "X") != weights_) return false;
    const ir::Op& op = *node(means).op;
    if (op.type == "matmul" && (op.attr<bool>("transpose_X") || op.attr<bool>("transpose_Y") ||
                                op.attr<float>("alpha") != 1.0f || op.attr<int32_t>("head_number") != 1)) {
      return false;
    }
    v_ = input_var(node(means), "Y");
    out_ = output_var(node(means), "Out");
    parts_.push_back(means);
    return is_float(graph_, v_) && out_ >= 0 && same_batches(graph_.vars[q_].desc.shape, graph_.vars[v_].desc.shape);
  }

  // ---- backward: from the gradient of the output down to that of the scores

  // The only reader of `var` of this type that is not a forward op.
  int back_reader(int var, const char* type) const {
    if (!is_float(graph_, var) || !edit_.uses.is_private(var)) return -1;
    const int r = edit_.uses.reader(var);
    return !edit_.gone(r) && is_type(node(r), {type}) && node(r).replica == node(parts_[0]).replica ? r : -1;
  }

  // All readers of internal values must be parts; no gradient at all is fine, too.
  bool match_backward() {
    const int means = gradient_of(parts_.back());
    if (means == kNone) return only_parts_read();
    if (means < 0 || input_var(node(means), "X") != weights_ || input_var(node(means), "Y") != v_) return false;
    back_ = {means};
    dout_ = input_var(node(means), "Out@GRAD");
    dv_ = output_var(node(means), "Y@GRAD");
    int value = output_var(node(means), "X@GRAD");
    if (dout_ < 0 || value < 0) return false;
    const auto go_on = [&](const char* type, const char* out) {
      const int at = back_reader(value, type);
      if (at < 0 || at < back_.back()) return -1;
      back_.push_back(at);
      return value = output_var(node(at), out);
    };
    if (drop_ >= 0 &&
        (go_on("dropout_grad", "X@GRAD") < 0 || (mask_ >= 0 && input_var(node(back_.back()), "Mask") != mask_))) {
      return false;
    }
    if (go_on("softmax_grad", "X@GRAD") < 0 || input_var(node(back_.back()), "Out") != probabilities_) return false;
    if (add_ >= 0 && !match_mask_gradient(&value)) return false;
    const int scores = back_reader(value, "matmul_grad");
    if (scores < back_.back() || input_var(node(scores), "X") != q_ || input_var(node(scores), "Y") != k_ ||
        input_var(node(scores), "Out@GRAD") != value) {
      return false;
    }
    back_.push_back(scores);
    dq_ = output_var(node(scores), "X@GRAD");
    dk_ = output_var(node(scores), "Y@GRAD");
    return only_parts_read();
  }

  // The mask itself has no gradient; if none is needed, the gradient of the sum is the sum's.
  bool match_mask_gradient(int* value) {
    const int at = edit_.uses.is_private(*value) ? edit_.uses.reader(*value) : -1;
    if (at < 0 || !is_type(node(at), {"elementwise_add_grad"})) return at >= 0;
    if (output_var(node(at), "Y@GRAD") >= 0 || at < back_.back()) return false;
    back_.push_back(at);
    *value = output_var(node(at), "X@GRAD");
    return *value >= 0;
  }

  static constexpr int kNone = -2;
  // The gradient op that reads this node's inputs; kNone: there is none.
  int gradient_of(int means) const {
    const std::string type = node(means).op->type + "_grad";
    int found = kNone;
    for (int r : edit_.uses.readers(weights_)) {
      const bool of_softmax = weights_ == probabilities_ && is_type(node(r), {"softmax_grad"});
      if (r == means || of_softmax) continue;
      if (found != kNone || !is_type(node(r), {type.c_str()})) return -1;
      found = r;
    }
    return found;
  }

  bool only_parts_read() const {
    std::vector<int> inside = {scores_, probabilities_, weights_};
    if (add_ >= 0) inside.push_back(output_var(node(add_), "Out"));
    if (mask_ >= 0) inside.push_back(mask_);
    const auto is_part = [&](int r) {
      return std::count(parts_.begin(), parts_.end(), r) + std::count(back_.begin(), back_.end(), r) > 0;
    };
    return std::all_of(inside.begin(), inside.end(), [&](int var) {
      const auto& readers = edit_.uses.readers(var);
      return edit_.uses.is_inner(var) && std::all_of(readers.begin(), readers.end(), is_part);
    });
  }

  NodeBuilder builder(const char* type, int like) const {
    NodeBuilder made(graph_, type, node(like));
    made.attr("alpha", node(parts_[0]).op->attr<float>("alpha"));
    tell_dropout(made, drop_ < 0 ? nullptr : &node(drop_));
    return made;
  }

  bool replace() {
    const bool trains = !back_.empty();
    const bool masked = trains && drop_ >= 0 && !node(drop_).op->attr<bool>("is_test");
    if (masked && mask_ < 0) return false;
    NodeBuilder forward = builder("fused_attention", parts_[0]);
    forward.in("Q", q_).in("K", k_).in("V", v_).in("Bias", bias_).out("Out", out_);
    if (trains) forward.out("Softmax", probabilities_);
    if (masked) forward.out("Mask", mask_);
    edit_.replace(parts_, forward.done());
    if (!trains) return true;
    NodeBuilder backward = builder("fused_attention_grad", back_[0]);
    backward.in("Q", q_).in("K", k_).in("V", v_).in("Softmax", probabilities_).in("Out@GRAD", dout_);
    if (masked) backward.in("Mask", mask_);
    backward.out("Q@GRAD", dq_).out("K@GRAD", dk_).out("V@GRAD", dv_);
    edit_.replace(back_, backward.done());
    return true;
  }

  const Graph& graph_;
  GraphEdit& edit_;
  std::vector<int> parts_, back_;  // nodes
  int add_ = -1, drop_ = -1;       // indices of optional parts
  int q_ = -1, k_ = -1, v_ = -1, bias_ = -1, out_ = -1, scores_ = -1, probabilities_ = -1, weights_ = -1, mask_ = -1,
      dq_ = -1, dk_ = -1, dv_ = -1, dout_ = -1;  // variables
};

template <class Fuse> int each_node(Graph& graph, Fuse&& fuse) {
  GraphEdit edit(graph);
  int done = 0;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    if (!edit.gone(i)) done += fuse(edit, i);
  }
  edit.commit();
  return done;
}

int fuse_attention(Graph& graph, const PassContext&) {
  const int fused = each_node(graph, [&](GraphEdit& edit, int i) { return Attention(graph, edit).fuse(i) ? 1 : 0; });
  if (fused) each_node(graph, [&](GraphEdit& edit, int i) { return fuse_transposed_heads(graph, edit, i); });
  return fused;
}

}  // namespace

const Pass kFuseAttention = {.name = "fuse_attention",
                             .what = "products with a softmax between them work head by head in the cache",
                             .tolerance = "sums in a different order, relative 1e-6",
                             .needs_flag = "FLAGS_fuse_attention",
                             .run = fuse_attention};

}  // namespace anabranch
