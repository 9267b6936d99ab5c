// matmul + elementwise_add of a mask + softmax + dropout + matmul become fused_attention, and their gradients
// fused_attention_grad, which reads the probabilities and the dropout mask. Then both fuse transposes that move the
// heads before the rows. A value that other nodes read, or that is fetched, keeps the ops separate.
#include "graph/match.h"
#include "graph/passes/passes.h"
#include "graph/passes/patterns/dropout.h"
#include "graph/passes/patterns/transposed_heads.h"

namespace anabranch {
namespace attention {
namespace {

enum Name { kQ, kK, kV, kBias, kMask };
enum Part { kScores, kAdd, kSoftmax, kDrop, kMeans };

bool same_batches(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i + 2 < a.rank(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

bool compares_rows(const Match& m, const GraphNode& scores) {
  const Shape& q = m.desc(kQ).shape;
  return !scores.op->attr<bool>("transpose_X") && scores.op->attr<bool>("transpose_Y") &&
         scores.op->attr<int32_t>("head_number") == 1 && is_float(m.graph(), m[kQ]) && is_float(m.graph(), m[kK]) &&
         q.rank() >= 3 && same_batches(q, m.desc(kK).shape);
}

// A mask of the scores' rank.
bool adds_mask(const Match& m, const GraphNode& add) {
  const auto axis = add.op->attr<int32_t>("axis");
  return is_float(m.graph(), m[kBias]) && m.desc(kBias).shape.rank() == m.desc(kQ).shape.rank() &&
         (axis == -1 || axis == 0);
}

bool is_by_row(const Match& m, const GraphNode& softmax) {
  const auto axis = softmax.op->attr<int32_t>("axis");
  return axis == -1 || axis == m.desc(kQ).shape.rank() - 1;
}

bool takes_means(const Match& m, const GraphNode& means) {
  const ir::Op& op = *means.op;
  const bool plain = op.type == "bmm" || (!op.attr<bool>("transpose_X") && !op.attr<bool>("transpose_Y") &&
                                          op.attr<float>("alpha") == 1.0f && op.attr<int32_t>("head_number") == 1);
  return plain && is_float(m.graph(), m[kV]) && same_batches(m.desc(kQ).shape, m.desc(kV).shape);
}

const Pattern& chain() {
  static const Pattern pattern =
      down(op("matmul").in("X", kQ).in("Y", kK).makes("Out").when(compares_rows, "it is not Q K^T of each head"))
          .maybe(op("elementwise_add")
                     .reads("X")
                     .in("Y", kBias)
                     .makes("Out")
                     .may_pass_gradient()
                     .when(adds_mask, "the mask does not have the rank of the scores"))
          .then(op("softmax").reads("X").makes("Out").when(is_by_row, "it is not by row"))
          .maybe(op("dropout")
                     .reads("X")
                     .inner("Mask", kMask)
                     .makes("Out")
                     .when([](const Match&, const GraphNode& drop) { return draws_anywhere(drop); },
                           "it would draw other numbers"))
          .then(
              op({"matmul", "bmm"}).reads("X").in("Y", kV).makes("Out").when(takes_means, "it is not P V of each head"))
          .each(is_float, "the value between them is not a float32 tensor")
          .with_gradient();
  return pattern;
}

bool replace(GraphEdit& edit, const Match& m) {
  const GraphNode* drop = m.node(kDrop);
  const bool trains = m.has_gradient(), masked = trains && drop && !drop->op->attr<bool>("is_test");
  if ((masked && m[kMask] < 0) || m.gradient(kBias) >= 0) return false;  // the gradient of a mask is a sum over heads
  const auto make = [&](const char* type, const GraphNode& like) {
    NodeBuilder made(m.graph(), type, like);
    made.attr("alpha", m.node(kScores)->op->attr<float>("alpha"));
    tell_dropout(made, drop);
    return made.in("Q", m[kQ]).in("K", m[kK]).in("V", m[kV]);
  };
  NodeBuilder forward = make("fused_attention", *m.node(kScores));
  forward.in("Bias", m[kBias]).out("Out", m.end());
  if (trains) forward.out("Softmax", m.result(kSoftmax)).out("Mask", masked ? m[kMask] : -1);
  GraphNode made = forward.done();
  if (trains) {
    NodeBuilder backward = make("fused_attention_grad", *m.gradient_node(kMeans));
    backward.in("Softmax", m.result(kSoftmax)).in("Mask", masked ? m[kMask] : -1).in("Out@GRAD", m.result_gradient());
    backward.out("Q@GRAD", m.gradient(kQ)).out("K@GRAD", m.gradient(kK)).out("V@GRAD", m.gradient(kV));
    edit.replace(m.gradient_parts(), backward.done());
  }
  edit.replace(m.parts(), std::move(made));
  return true;
}

int run(Graph& graph, const PassContext& context) {
  const int fused = fuse(graph, context, {{chain(), replace}});
  if (fused > 0) fuse_transposed_heads(graph, context);
  return fused;
}

}  // namespace
}  // namespace attention

const Pass kFuseAttention = {
    .name = "fuse_attention",
    .what = "fuses two products with a softmax between them, and computes them head by head in the cache",
    .tolerance = "sums in a different order, relative 1e-6",
    .needs_flag = "FLAGS_fuse_attention",
    .run = attention::run};

}  // namespace anabranch
