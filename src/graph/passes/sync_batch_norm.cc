// sync_batch_norm: batch norms of replicas on devices use the statistics of the whole batch. Each becomes sums of its
// channels and an op on the sums over all replicas; so does its gradient, with another round of sums. Replicas on the
// CPU keep separate statistics, as in Fluid.
#include <algorithm>
#include <string>

#include "base/counted.h"
#include "graph/edit.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

constexpr const char *kForward = "batch_norm", *kBackward = "batch_norm_grad";

bool is_true(const ir::Op& op, const char* attr) { return op.has_attr(attr) && op.attr<bool>(attr); }

// A gradient that is not needed for X stays within this replica.
bool takes_part(const GraphNode& node) {
  const ir::Op& op = *node.op;
  if (op.type != kForward && op.type != kBackward) return false;
  if (is_true(op, "use_global_stats") || (is_true(op, "is_test") && !is_true(op, "trainable_statistics"))) return false;
  return op.type == kForward || output_var(node, "X@GRAD") >= 0;
}

class Splitter {
 public:
  explicit Splitter(Graph& graph) : graph_(graph) {}

  int run(const PassContext& context) {
    std::vector<GraphNode> nodes = std::move(graph_.nodes);
    for (size_t i = 0; i < nodes.size();) {
      const size_t end = end_of_op(nodes, i);
      if (end > i + 1) {
        split({nodes.begin() + static_cast<std::ptrdiff_t>(i), nodes.begin() + static_cast<std::ptrdiff_t>(end)});
      } else {
        out_.push_back(std::move(nodes[i]));
      }
      i = end;
    }
    graph_.nodes = std::move(out_);
    if (rounds_ > 0 && context.notes) {
      context.notes->push_back(fmt::format("{} over {}, {} of each in a step",
                                           counted(rounds_, "round of sums", "rounds of sums"),
                                           counted(graph_.replicas, "replica"), counted(bytes_, "byte")));
    }
    return rounds_;
  }

 private:
  // The nodes of one op are adjacent, one for each replica with rows.
  static size_t end_of_op(const std::vector<GraphNode>& nodes, size_t i) {
    size_t end = i + 1;
    while (takes_part(nodes[i]) && end < nodes.size() && nodes[end].index == nodes[i].index && nodes[i].index >= 0 &&
           nodes[end].op->type == nodes[i].op->type) {
      ++end;
    }
    return end;
  }

  int add_sums(const GraphNode& of, int replica, const char* what) {
    const int x = input_var(of, "X"), scale = input_var(of, "Scale");
    ir::Var desc;
    desc.name = fmt::format("@{}_{}_{}@", of.op->type, of.index, what);
    desc.dtype = DType::kFloat64;
    const int64_t channels = graph_.vars[scale].desc.shape.numel();
    desc.shape = Shape{channels > 0 ? 2 * channels + 1 : kUnknown};
    const int v = graph_.var(desc.name, replica, desc);
    graph_.vars[v].produced = true;
    graph_.vars[v].dynamic = graph_.vars[x].dynamic;
    return v;
  }

  GraphNode sums_of(const GraphNode& part, int to) const {
    NodeBuilder node(graph_, "batch_norm_sums", part);
    node.copy({"data_layout"}).in("X", input_var(part, "X"));
    if (part.op->type == kBackward) {
      for (const char* slot : {"SavedMean", "SavedVariance", "Y@GRAD"}) node.in(slot, input_var(part, slot));
    }
    return node.out("Sums", to).done();
  }

  GraphNode forward(const GraphNode& part, int sums) const {
    NodeBuilder node(graph_, "batch_norm_by_sums", part);
    node.copy({"data_layout", "epsilon", "momentum", "op_role_var"}).in("Sums", sums);
    for (const char* slot : {"X", "Scale", "Bias", "Mean", "Variance", "MomentumTensor"}) {
      node.in(slot, input_var(part, slot));
    }
    for (const char* slot : {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
      node.out(slot, output_var(part, slot));
    }
    return node.done();
  }

  GraphNode backward(const GraphNode& part, int sums, int own) const {
    NodeBuilder node(graph_, "batch_norm_grad_by_sums", part);
    node.copy({"data_layout", "op_role_var"}).in("Sums", sums).in("OwnSums", own);
    for (const char* slot : {"X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD"}) {
      node.in(slot, input_var(part, slot));
    }
    for (const char* slot : {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}) node.out(slot, output_var(part, slot));
    return node.done();
  }

  void split(const std::vector<GraphNode>& parts) {
    std::vector<int> own, all;
    for (const GraphNode& part : parts) {
      own.push_back(add_sums(part, part.replica, "sums"));
      out_.push_back(sums_of(part, own.back()));
    }
    // Replicas without rows take part in the sum, too.
    for (int r = 0; r < graph_.replicas; ++r) all.push_back(add_sums(parts[0], r, "sums_of_all"));
    NodeBuilder sum(graph_, "all_reduce", parts[0]);
    out_.push_back(sum.attr("op_role_var", std::vector<std::string>()).in("X", own).out("Out", all).done());
    out_.back().replica = 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      const int sums = all[static_cast<size_t>(parts[k].replica)];
      out_.push_back(parts[k].op->type == kForward ? forward(parts[k], sums) : backward(parts[k], sums, own[k]));
      out_.back().tokens = parts[k].tokens;
      out_.back().parts = {{parts[k].index, parts[k].op}};
    }
    ++rounds_;
    bytes_ += std::max<int64_t>(0, graph_.vars[own[0]].desc.shape.numel()) * static_cast<int64_t>(sizeof(double));
  }

  Graph& graph_;
  std::vector<GraphNode> out_;
  int rounds_ = 0;
  int64_t bytes_ = 0;
};

int sync_batch_norm(Graph& graph, const PassContext& context) { return Splitter(graph).run(context); }

}  // namespace

const Pass kSyncBatchNorm = {.name = "sync_batch_norm",
                             .what = "computes batch norms with the statistics of all replicas",
                             .tolerance = "as batch_norm of the whole batch",
                             .needs = AB_SWITCH(sync_batch_norm),
                             .on_devices = true,
                             .skip = skip_on_cpu,
                             .run = sync_batch_norm};

}  // namespace anabranch
