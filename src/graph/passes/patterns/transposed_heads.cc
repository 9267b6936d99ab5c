#include "graph/passes/patterns/transposed_heads.h"

#include <algorithm>
#include <memory>
#include <string>

namespace anabranch {
namespace {

bool transposes_heads(const GraphNode& node, const char* type) {
  return is_plain(node) && node.op->type == type &&
         node.op->attr<std::vector<int32_t>>("axis") == std::vector<int32_t>{0, 2, 1, 3};
}

class Heads {
 public:
  Heads(Graph& graph, GraphEdit& edit) : graph_(graph), edit_(edit) {}

  int fuse(int i) {
    if (graph_.nodes[i].op->type != "fused_attention") return 0;
    int taken = 0;
    for (const auto& [slot, attr] : {std::pair{"Q", "q_heads_last"}, {"K", "k_heads_last"}, {"V", "v_heads_last"}}) {
      taken += input(i, slot, attr);
    }
    return taken + output(i);
  }

 private:
  // A node with one variable replaced by another, and one more attribute.
  void change(int i, int from, int to, const char* attr) {
    GraphNode& node = graph_.nodes[i];
    auto op = std::make_shared<ir::Op>(*node.op);
    const auto exchange = [&](std::vector<ir::Slot>& slots, std::vector<int>& ids) {
      size_t at = 0;
      for (ir::Slot& slot : slots) {
        for (std::string& arg : slot.args) {
          if (ids[at] == from) {
            ids[at] = to;
            arg = graph_.vars[to].name;
          }
          ++at;
        }
      }
    };
    exchange(op->inputs, node.ins);
    exchange(op->outputs, node.outs);
    op->attrs[attr] = true;
    node.op = op;
  }

  // The gradient op among the readers of `var`: -1 if there is none, -2 if there are other readers.
  int gradient_among(int var, int forward) const {
    int found = -1;
    for (int r : edit_.uses.readers(var)) {
      if (r == forward) continue;
      if (found >= 0 || graph_.nodes[r].op->type != "fused_attention_grad") return -2;
      found = r;
    }
    return found;
  }

  // The second output of a transpose has no reader except `only`.
  bool shape_is_for(int transpose, int only) const {
    const int shape = output_var(graph_.nodes[transpose], "XShape");
    if (shape < 0) return true;
    const auto& readers = edit_.uses.readers(shape);
    return !graph_.vars[shape].fetched && std::all_of(readers.begin(), readers.end(), [&](int r) { return r == only; });
  }

  bool input(int i, const std::string& slot, const char* attr) {
    const int var = input_var(graph_.nodes[i], slot);
    const int transpose = edit_.uses.is_inner(var) ? edit_.uses.writer(var) : -1;
    if (transpose < 0 || edit_.gone(transpose) || !transposes_heads(graph_.nodes[transpose], "transpose2"))
      return false;
    const int x = input_var(graph_.nodes[transpose], "X"), back = gradient_among(var, i);
    if (!is_float(graph_, x) || !edit_.uses.is_inner(x) || back == -2) return false;
    // Another slot of the same nodes may hold the same variable.
    const auto& ins = graph_.nodes[i].ins;
    if (std::count(ins.begin(), ins.end(), var) != 1) return false;
    int dvar = -1, transpose_back = -1;
    if (back >= 0) {
      dvar = output_var(graph_.nodes[back], slot + "@GRAD");
      transpose_back = dvar >= 0 && edit_.uses.is_private(dvar) ? edit_.uses.reader(dvar) : -1;
      if (dvar >= 0 && (transpose_back < 0 || !transposes_heads(graph_.nodes[transpose_back], "transpose2_grad")))
        return false;
      if (transpose_back >= 0 && output_var(graph_.nodes[transpose_back], "X@GRAD") < 0) return false;
    }
    if (!shape_is_for(transpose, transpose_back) || (transpose_back >= 0 && !written_once(transpose_back, "X@GRAD")))
      return false;
    change(i, var, x, attr);
    edit_.remove(transpose);
    if (back >= 0) change(back, var, x, attr);
    if (transpose_back >= 0) {
      change(back, dvar, output_var(graph_.nodes[transpose_back], "X@GRAD"), attr);
      edit_.remove(transpose_back);
    }
    return true;
  }

  bool output(int i) {
    const int var = output_var(graph_.nodes[i], "Out");
    const int transpose = edit_.uses.is_private(var) ? edit_.uses.reader(var) : -1;
    if (transpose < 0 || !transposes_heads(graph_.nodes[transpose], "transpose2") || !written_once(transpose, "Out"))
      return false;
    const int probabilities = output_var(graph_.nodes[i], "Softmax");
    int back = -1, transpose_back = -1, dvar = -1;
    if (probabilities >= 0) {
      back = edit_.uses.reader(probabilities);
      dvar = back < 0 ? -1 : input_var(graph_.nodes[back], "Out@GRAD");
      transpose_back = dvar >= 0 && edit_.uses.is_private(dvar) ? edit_.uses.writer(dvar) : -1;
      if (transpose_back < 0 || !transposes_heads(graph_.nodes[transpose_back], "transpose2_grad")) return false;
      const int from = input_var(graph_.nodes[transpose_back], "Out@GRAD");
      if (from < 0 || edit_.uses.writer(from) < 0) return false;
    }
    if (!shape_is_for(transpose, transpose_back)) return false;
    change(i, var, output_var(graph_.nodes[transpose], "Out"), "out_heads_last");
    edit_.remove(transpose);
    if (back >= 0) {
      change(back, dvar, input_var(graph_.nodes[transpose_back], "Out@GRAD"), "out_heads_last");
      edit_.remove(transpose_back);
    }
    return true;
  }

  // The value may be computed earlier than before: by another node, in the same run.
  bool written_once(int node, const char* slot) const {
    const int var = output_var(graph_.nodes[node], slot);
    return var >= 0 && edit_.uses.writer(var) == node && !graph_.vars[var].desc.persistable;
  }

  Graph& graph_;
  GraphEdit& edit_;
};

}  // namespace

int fuse_transposed_heads(Graph& graph, GraphEdit& edit, int node) { return Heads(graph, edit).fuse(node); }

}  // namespace anabranch
