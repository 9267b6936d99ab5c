// Attention in one op, made by the pass fuse_attention from two products, the softmax between them, and optionally a
// factor, an added mask, and dropout of the probabilities. The score matrices never leave the cache, except as the
// probabilities that the gradient reads.
#include "ops/nn/attention.h"

#include "ops/declare/declare.h"
#include "ops/kernels/work.h"
#include "ops/nn/drop.h"

namespace anabranch::nn::attention_op {
namespace {

struct Layout {
  bool q, k, v, out;
  explicit Layout(const ir::Op& op)
      : q(op.attr<bool>("q_heads_last")),
        k(op.attr<bool>("k_heads_last")),
        v(op.attr<bool>("v_heads_last")),
        out(op.attr<bool>("out_heads_last")) {}
};

void check_operand(const InferContext& c, const char* slot, bool last) {
  const int rank = c.in(slot).shape.rank();
  AB_CHECK(last ? rank == 4 : rank >= 3, ShapeMismatch, "{} must have {} axes, got {}", slot, last ? "4" : "at least 3",
           c.in(slot).shape.str());
}

// The shape of the scores, which determines all others.
Shape check_operands(const InferContext& c) {
  const Layout layout(c.op());
  check_operand(c, "Q", layout.q);
  check_operand(c, "K", layout.k);
  check_operand(c, "V", layout.v);
  const Shape q = heads_first(c.in("Q").shape, layout.q), k = heads_first(c.in("K").shape, layout.k),
              v = heads_first(c.in("V").shape, layout.v);
  const int r = q.rank();
  AB_CHECK(k.rank() == r && v.rank() == r && compatible(q.slice(0, r - 2), k.slice(0, r - 2)) &&
               compatible(q.slice(0, r - 2), v.slice(0, r - 2)),
           ShapeMismatch, "batch dimensions differ: Q is {}, K is {}, V is {}", q.str(), k.str(), v.str());
  const auto same = [](int64_t a, int64_t b) { return a == b || a == kUnknown || b == kUnknown; };
  AB_CHECK(same(q[r - 1], k[r - 1]) && same(k[r - 2], v[r - 2]), ShapeMismatch,
           "inner dimensions differ: Q is {}, K is {}, V is {}", q.str(), k.str(), v.str());
  Shape scores = q;
  scores.set(r - 1, k[r - 2]);
  if (c.has_in("Bias")) {
    const Shape& bias = c.in("Bias").shape;
    bool fits = bias.rank() == r;
    for (int i = 0; fits && i < r; ++i) fits = bias[i] == 1 || same(bias[i], scores[i]);
    AB_CHECK(fits, ShapeMismatch, "Bias must have the extents of the scores {}, or 1, got {}", scores.str(),
             bias.str());
  }
  return scores;
}

Shape out_shape(const InferContext& c) {
  const Layout layout(c.op());
  Shape out = heads_first(c.in("Q").shape, layout.q);
  const Shape& v = c.in("V").shape;
  out.set(out.rank() - 1, v[v.rank() - 1]);
  return heads_first(out, layout.out);  // its own inverse
}

void infer(InferContext& c) {
  const Shape scores = check_operands(c);
  c.set_out("Out", out_shape(c), c.in("Q").dtype);
  if (!Layout(c.op()).q && !Layout(c.op()).out) c.share_lod("Out", "Q");
  if (c.has_out("Softmax")) c.set_out("Softmax", scores, c.in("Q").dtype);
  if (c.has_out("Mask")) c.set_out("Mask", scores, DType::kUInt8);
}

void infer_grad(InferContext& c) {
  const Shape scores = check_operands(c);
  check_shape(c, "Softmax", scores);
  if (c.has_in("Mask")) check_shape(c, "Mask", scores);
  check_shape(c, "Out@GRAD", out_shape(c));
  const auto gradient = [&](const char* slot, const char* of, bool last) {
    if (!c.has_out(slot)) return;
    c.set_out(slot, c.in(of).shape, c.in(of).dtype);
    if (last) c.share_lod(slot, of);
  };
  gradient("Q@GRAD", "Q", Layout(c.op()).q);
  gradient("K@GRAD", "K", Layout(c.op()).k);
  gradient("V@GRAD", "V", Layout(c.op()).v);
}

double attention_flops(const WorkContext& c) {
  const Tensor *q = c.in("Q"), *k = c.in("K");
  if (!q || !k || q->numel() == 0) return 0;
  const HeadMatrices a(q->shape(), c.op().attr<bool>("q_heads_last")), b(k->shape(), c.op().attr<bool>("k_heads_last"));
  const double product = 2 * elems_of(q) * static_cast<double>(b.rows);  // assumes that V is as wide as Q
  return (c.gradient() ? 4 : 2) * product;
}

void attrs(OpDef& def) {
  def.attr<float>("alpha", 1.0f, "factor for Q K^T")
      .attr<bool>("q_heads_last", false, "Q is [samples, rows, heads, columns], else [samples, heads, rows, columns]")
      .attr<bool>("k_heads_last", false, "layout of K, like q_heads_last")
      .attr<bool>("v_heads_last", false, "layout of V, like q_heads_last")
      .attr<bool>("out_heads_last", false, "layout of Out, like q_heads_last")
      .with(drop_attrs);
}

AB_OP(fused_attention)
    .doc("Out = dropout(softmax(alpha Q K^T + Bias)) V for each head of each sample.")
    .source("Vaswani et al. 2017, arXiv:1706.03762")
    .in("Q", "[..., rows, width] float32")
    .in("K", "[..., keys, width] like Q")
    .in("V", "[..., keys, columns] like Q")
    .in_optional("Bias", "[..., rows, keys], extents may be 1")
    .out("Out", "[..., rows, columns]")
    .out_optional("Softmax", "[..., rows, keys]: the probabilities, for the gradient")
    .out_optional("Mask", "like Softmax, uint8: 1 where a probability was kept")
    .with(attrs)
    .effects(kEngineOnly | kRandom)
    .flops(attention_flops)
    .infer(infer)
    .no_grad("inserted after the gradients")
    .cpu<float>([](auto, const KernelArgs& op) { return attention_forward(op); });

AB_GRAD(fused_attention)
    .doc("Gradients of fused_attention with respect to Q, K and V.")
    .in("Q", "as in fused_attention")
    .in("K", "as in fused_attention")
    .in("V", "as in fused_attention")
    .in("Softmax", "as in fused_attention")
    .in_optional("Mask", "as in fused_attention, if it uses dropout")
    .in("Out@GRAD", "like Out")
    .out_optional("Q@GRAD", "like Q")
    .out_optional("K@GRAD", "like K")
    .out_optional("V@GRAD", "like V")
    .with(attrs)
    .effects(kEngineOnly)
    .infer(infer_grad)
    .cpu<float>([](auto, const KernelArgs& op) { return attention_backward(op); });

}  // namespace
}  // namespace anabranch::nn::attention_op
