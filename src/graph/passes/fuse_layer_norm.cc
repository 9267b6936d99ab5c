// elementwise_add, with a dropout of one of its operands, and layer_norm of the sum become fused_add_layer_norm, and
// their gradients fused_add_layer_norm_grad. A sum that other nodes read, or that is fetched, keeps the ops separate.
#include <algorithm>

#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "graph/passes/patterns/dropout.h"

namespace anabranch {
namespace {

bool is_type(const GraphNode& node, const char* type) { return is_plain(node) && node.op->type == type; }

class ResidualNorm {
 public:
  ResidualNorm(const Graph& graph, GraphEdit& edit) : graph_(graph), edit_(edit) {}

  bool fuse(int norm) {
    norm_ = norm;
    if (!match()) return false;
    match_dropout();
    if (!match_backward()) {
      if (drop_ < 0) return false;
      drop_ = -1;  // the sum and the norm alone
      side_ = input_var(node(add_), "Y");
      other_ = input_var(node(add_), "X");
      mask_ = -1;
      if (!match_backward()) return false;
    }
    parts_ = drop_ >= 0 ? std::vector<int>{drop_, add_, norm_} : std::vector<int>{add_, norm_};
    if (!std::is_sorted(parts_.begin(), parts_.end()) || !std::is_sorted(back_.begin(), back_.end())) return false;
    if (!edit_.may_gather(parts_) || (!back_.empty() && !edit_.may_gather(back_))) return false;
    replace();
    return true;
  }

 private:
  const GraphNode& node(int i) const { return graph_.nodes[i]; }

  bool match() {
    if (!is_type(node(norm_), "layer_norm") || output_var(node(norm_), "Y") < 0) return false;
    sum_ = input_var(node(norm_), "X");
    add_ = is_float(graph_, sum_) && edit_.uses.is_inner(sum_) ? edit_.uses.writer(sum_) : -1;
    if (add_ < 0 || edit_.gone(add_) || !is_type(node(add_), "elementwise_add") ||
        node(add_).replica != node(norm_).replica || node(add_).role() != node(norm_).role()) {
      return false;
    }
    other_ = input_var(node(add_), "X");
    side_ = input_var(node(add_), "Y");
    const auto axis = node(add_).op->attr<int32_t>("axis");
    return is_float(graph_, other_) && is_float(graph_, side_) && other_ != side_ && no_sequences(other_) &&
           no_sequences(side_) && (axis == -1 || axis == 0) &&
           graph_.vars[other_].desc.shape == graph_.vars[side_].desc.shape;
  }

  bool no_sequences(int var) const { return graph_.vars[var].desc.lod_level == 0; }

  // Either operand may come from a dropout that has no other reader than its gradient's shape.
  void match_dropout() {
    for (const char* slot : {"Y", "X"}) {
      const int var = input_var(node(add_), slot);
      const int drop = edit_.uses.is_inner(var) ? edit_.uses.writer(var) : -1;
      if (drop < 0 || edit_.gone(drop) || !is_type(node(drop), "dropout") || !draws_anywhere(node(drop)) ||
          node(drop).role() != node(norm_).role()) {
        continue;
      }
      drop_ = drop;
      dropped_ = var;
      side_ = input_var(node(drop), "X");
      mask_ = output_var(node(drop), "Mask");
      if (slot[0] == 'X') other_ = input_var(node(add_), "Y");
      return;
    }
  }

  bool match_backward() {
    back_.clear();
    dother_ = dside_ = -1;
    int found = -1;
    for (int r : edit_.uses.readers(sum_)) {
      if (r == norm_ || is_type(node(r), "elementwise_add_grad")) continue;
      if (found >= 0 || !is_type(node(r), "layer_norm_grad")) return false;
      found = r;
    }
    if (found < 0) return only_parts_read();
    back_ = {found};
    const int dsum = output_var(node(found), "X@GRAD");
    const int add = dsum >= 0 && edit_.uses.is_private(dsum) ? edit_.uses.reader(dsum) : -1;
    if (add < 0 || edit_.gone(add) || !is_type(node(add), "elementwise_add_grad") ||
        input_var(node(add), "Out@GRAD") != dsum) {
      return false;
    }
    back_.push_back(add);
    const bool swapped = drop_ >= 0 && input_var(node(add_), "X") == dropped_;
    dother_ = output_var(node(add), swapped ? "Y@GRAD" : "X@GRAD");
    dside_ = output_var(node(add), swapped ? "X@GRAD" : "Y@GRAD");
    if (drop_ >= 0 && dside_ >= 0) {
      const int drop = edit_.uses.is_private(dside_) ? edit_.uses.reader(dside_) : -1;
      if (drop < 0 || !is_type(node(drop), "dropout_grad") || input_var(node(drop), "Mask") != mask_) return false;
      back_.push_back(drop);
      dside_ = output_var(node(drop), "X@GRAD");
    }
    return only_parts_read();
  }

  bool only_parts_read() const {
    const auto is_part = [&](int r) {
      return r == drop_ || r == add_ || r == norm_ || std::count(back_.begin(), back_.end(), r) > 0;
    };
    const auto inside = [&](int var) {
      const auto& readers = edit_.uses.readers(var);
      return var < 0 || (edit_.uses.is_inner(var) && std::all_of(readers.begin(), readers.end(), is_part));
    };
    return inside(sum_) && (drop_ < 0 || (inside(dropped_) && inside(mask_)));
  }

  void replace() {
    const bool trains = !back_.empty();
    const GraphNode* drop = drop_ < 0 ? nullptr : &node(drop_);
    const bool masked = trains && drop && !drop->op->attr<bool>("is_test");
    const auto make = [&](const char* type, const GraphNode& like) {
      NodeBuilder made(graph_, type, like);
      made.copy({"epsilon", "begin_norm_axis"});
      tell_dropout(made, drop);
      return made.in("Scale", input_var(node(norm_), "Scale")).in("Bias", input_var(node(norm_), "Bias"));
    };
    const int mean = output_var(node(norm_), "Mean"), variance = output_var(node(norm_), "Variance");
    NodeBuilder forward = make("fused_add_layer_norm", node(norm_));
    forward.in("X", other_).in("Y", side_).out("Out", output_var(node(norm_), "Y"));
    forward.out("Sum", trains ? sum_ : -1).out("Mean", mean).out("Variance", variance);
    forward.out("Mask", masked ? mask_ : -1);
    GraphNode made = forward.done();
    if (trains) {
      const GraphNode& norm_grad = node(back_[0]);
      NodeBuilder backward = make("fused_add_layer_norm_grad", norm_grad);
      backward.attr("op_role_var", role_vars_of(graph_, back_));
      backward.in("Sum", sum_).in("Mean", mean).in("Variance", variance).in("Mask", masked ? mask_ : -1);
      backward.in("Out@GRAD", input_var(norm_grad, "Y@GRAD")).out("X@GRAD", dother_).out("Y@GRAD", dside_);
      backward.out("Scale@GRAD", output_var(norm_grad, "Scale@GRAD"));
      backward.out("Bias@GRAD", output_var(norm_grad, "Bias@GRAD"));
      edit_.replace(back_, backward.done());
    }
    edit_.replace(parts_, std::move(made));
  }

  const Graph& graph_;
  GraphEdit& edit_;
  std::vector<int> parts_, back_;                                                                // nodes
  int norm_ = -1, add_ = -1, drop_ = -1;                                                         // among them
  int sum_ = -1, other_ = -1, side_ = -1, dropped_ = -1, mask_ = -1, dother_ = -1, dside_ = -1;  // variables
};

int fuse_layer_norm(Graph& graph, const PassContext&) {
  GraphEdit edit(graph);
  int fused = 0;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    if (!edit.gone(i)) fused += ResidualNorm(graph, edit).fuse(i);
  }
  edit.commit();
  return fused;
}

}  // namespace

const Pass kFuseLayerNorm = {.name = "fuse_layer_norm",
                             .what = "layer_norm fuses the sum and the dropout before it",
                             .tolerance = "bit-equal",
                             .needs_flag = "FLAGS_fuse_layer_norm",
                             .run = fuse_layer_norm};

}  // namespace anabranch
