// layer_norm of a sum, one operand of which may pass through dropout: made by the pass fuse_layer_norm. A row is summed
// and normalized while it is in the cache; the same bits as the separate ops.
#include <cmath>
#include <vector>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/simd.h"
#include "ops/nn/channels.h"
#include "ops/nn/drop.h"
#include "ops/nn/layer_norm_rows.h"

namespace anabranch::nn::add_layer_norm_op {
namespace {

constexpr int64_t kGrain = 4096, kMaxChunks = 16;

struct Rows {
  int64_t count, width;
  Rows(const Shape& s, int begin) : count(s.numel(0, begin)), width(s.numel(begin, s.rank())) {}
  int64_t grain() const { return kGrain / std::max<int64_t>(1, width) + 1; }
};

void check_rows(const InferContext& c, const char* x) {
  const int axis = c.attr<int32_t>("begin_norm_axis");
  const Shape& s = c.in(x).shape;
  AB_CHECK(axis > 0 && axis < s.rank(), InvalidArgument, "begin_norm_axis must be from 1 to {} for {} {}, got {}",
           s.rank() - 1, x, s.str(), axis);
  for (const char* slot : {"Scale", "Bias"}) check_vector(c, slot, s.slice(axis, s.rank()).numel(), x);
}

void infer(InferContext& c) {
  check_same(c, "X", "Y");
  check_rows(c, "X");
  c.same_as("Out", "X");
  if (c.has_out("Sum")) c.same_as("Sum", "X");
  const Shape rows = {c.in("X").shape.slice(0, c.attr<int32_t>("begin_norm_axis")).numel()};
  for (const char* slot : {"Mean", "Variance"}) {
    if (c.has_out(slot)) c.set_out(slot, rows, c.in("X").dtype);
  }
  if (c.has_out("Mask")) c.set_out("Mask", c.in("X").shape, DType::kUInt8);
}

void infer_grad(InferContext& c) {
  check_rows(c, "Sum");
  check_same(c, "Sum", "Out@GRAD");
  if (c.has_in("Mask")) check_same_shape(c, "Mask", "Sum");
  const Shape rows = {c.in("Sum").shape.slice(0, c.attr<int32_t>("begin_norm_axis")).numel()};
  for (const char* slot : {"Mean", "Variance"}) check_shape(c, slot, rows);
  for (const char* slot : {"X@GRAD", "Y@GRAD"}) {
    if (c.has_out(slot)) c.set_out(slot, c.in("Sum").shape, c.in("Sum").dtype);
  }
  const Shape& s = c.in("Sum").shape;
  const Shape width = {s.slice(c.attr<int32_t>("begin_norm_axis"), s.rank()).numel()};
  for (const std::string slot : {"Scale", "Bias"}) {  // they have a gradient even if they are not given
    if (c.has_out(slot + "@GRAD"))
      c.set_out(slot + "@GRAD", c.has_in(slot) ? c.in(slot).shape : width, c.in("Sum").dtype);
  }
}

struct Forward {
  In x, y, scale, bias;
  Out out, sum, mean, variance, mask;
  DropOptions drops;
  RandomKey key;
  float epsilon;
  int axis;

  explicit Forward(const KernelArgs& op)
      : x(op.in("X")),
        y(op.in("Y")),
        scale(op.in("Scale")),
        bias(op.in("Bias")),
        out(op.out("Out")),
        sum(op.out("Sum")),
        mean(op.out("Mean")),
        variance(op.out("Variance")),
        mask(op.out("Mask")),
        drops(op.op()),
        key(drop_key(op)),
        epsilon(op.attr<float>("epsilon")),
        axis(op.attr<int32_t>("begin_norm_axis")) {}

  void operator()(KernelContext& c) const {
    const Rows rows(c[x].shape(), axis);
    const float *a = c[x].data<float>(), *b = c[y].data<float>();
    const float *s = scale ? c[scale].data<float>() : nullptr, *shift = bias ? c[bias].data<float>() : nullptr;
    float *to = c[out].mutable_data<float>(), *sums = needed<float>(c, sum), *m = needed<float>(c, mean),
          *v = needed<float>(c, variance);
    uint8_t* bits = drops.draws() ? needed<uint8_t>(c, mask) : nullptr;
    if (rows.width == 0) {
      for (float* none : {m, v}) {
        if (none) std::fill_n(none, rows.count, 0.0f);
      }
      return;
    }
    const Philox random(with_step(key, c));
    c.parallel_each(rows.count, rows.grain(), [&](int64_t r) {
      const int64_t at = r * rows.width;
      float *row = (sums ? sums : to) + at, unused;
      const float* side = b + at;
      if (drops.on) {
        drop(random, drops, at, rows.width, side, bits, row);
        side = row;
      }
      simd::add(a + at, side, row, rows.width);
      normalize_row(row, s, shift, rows.width, epsilon, to + at, m ? m + r : &unused, v ? v + r : &unused);
    });
  }
};

struct Backward {
  In sum, scale, mean, variance, mask, dout;
  Out dx, dy, dscale, dbias;
  DropOptions drops;
  float epsilon;
  int axis;
  std::vector<double> partial;  // per chunk of rows: sums of dout xhat, then of dout

  explicit Backward(const KernelArgs& op)
      : sum(op.in("Sum")),
        scale(op.in("Scale")),
        mean(op.in("Mean")),
        variance(op.in("Variance")),
        mask(op.in("Mask")),
        dout(op.in("Out@GRAD")),
        dx(op.out("X@GRAD")),
        dy(op.out("Y@GRAD")),
        dscale(op.out("Scale@GRAD")),
        dbias(op.out("Bias@GRAD")),
        drops(op.op()),
        epsilon(op.attr<float>("epsilon")),
        axis(op.attr<int32_t>("begin_norm_axis")) {}

  // Chunks of rows depend only on their number; their sums are added in order.
  void operator()(KernelContext& c) {
    const Rows rows(c[sum].shape(), axis);
    const float *x = c[sum].data<float>(), *g = c[dout].data<float>(), *m = c[mean].data<float>(),
                *v = c[variance].data<float>(), *s = scale ? c[scale].data<float>() : nullptr;
    const uint8_t* bits = drops.draws() && mask ? c[mask].data<uint8_t>() : nullptr;
    float *to_x = needed<float>(c, dx), *to_y = needed<float>(c, dy);
    const bool vectors = c.needs(dscale) || c.needs(dbias);
    const int64_t step = std::max((rows.count + kMaxChunks - 1) / kMaxChunks, rows.grain());
    const int64_t chunks = std::max<int64_t>(1, (rows.count + step - 1) / step);
    if (vectors) partial.assign(static_cast<size_t>(chunks * 2 * rows.width), 0.0);
    c.parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin * step; r < std::min(rows.count, end * step); ++r) {
        const int64_t at = r * rows.width;
        const float inv = 1 / std::sqrt(v[r] + epsilon);
        if (vectors) {
          double* products = partial.data() + r / step * 2 * rows.width;
          add_norm_sums(x + at, g + at, rows.width, m[r], inv, products, products + rows.width);
        }
        float* row = to_x ? to_x + at : to_y ? to_y + at : nullptr;
        if (!row || rows.width == 0) continue;
        normalize_grad_row(x + at, g + at, s, rows.width, m[r], inv, row);
        if (!to_y) continue;
        if (drops.on) {
          drop_again(drops, bits ? bits + at : nullptr, rows.width, row, to_y + at);
        } else if (to_y + at != row) {
          std::copy_n(row, rows.width, to_y + at);
        }
      }
    });
    add_up(c, dscale, rows.width, chunks, 0);
    add_up(c, dbias, rows.width, chunks, rows.width);
  }

  void add_up(const KernelContext& c, Out out, int64_t width, int64_t chunks, int64_t from) const {
    float* to = needed<float>(c, out);
    for (int64_t i = 0; to && i < width; ++i) {
      double total = 0;
      for (int64_t p = 0; p < chunks; ++p) total += partial[static_cast<size_t>(p * 2 * width + from + i)];
      to[i] = static_cast<float>(total);
    }
  }
};

void norm_attrs(OpDef& def) {
  def.attr<float>("epsilon", 1.0e-5f, "as in layer_norm", within("epsilon", 0.0f, 0.001f))
      .attr<int32_t>("begin_norm_axis", 1, "as in layer_norm")
      .with(drop_attrs);
}

AB_OP(fused_add_layer_norm)
    .doc("Sum = X + dropout(Y); Out = layer_norm(Sum).")
    .in("X", "[...] float32, at least 2 axes")
    .in("Y", "like X")
    .in_optional("Scale", "as in layer_norm")
    .in_optional("Bias", "as in layer_norm")
    .out("Out", "like X")
    .out_optional("Sum", "like X, for the gradient")
    .out_optional("Mean", "as in layer_norm")
    .out_optional("Variance", "as in layer_norm")
    .out_optional("Mask", "like X, uint8: 1 where an element of Y was kept")
    .with(norm_attrs)
    .effects(kEngineOnly | kRandom)
    .traits(kRowWise)
    .infer(infer)
    .no_grad("inserted after the gradients")
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Forward(op); });

AB_GRAD(fused_add_layer_norm)
    .doc(
        "X@GRAD = the gradient of layer_norm with respect to its input, Y@GRAD = the same where Y was kept; "
        "Scale@GRAD, Bias@GRAD.")
    .in("Sum", "as in fused_add_layer_norm")
    .in_optional("Scale", "as in layer_norm")
    .in_optional("Bias", "as in layer_norm")
    .in("Mean", "as in layer_norm")
    .in("Variance", "as in layer_norm")
    .in_optional("Mask", "as in fused_add_layer_norm")
    .in("Out@GRAD", "like Sum")
    .out_optional("X@GRAD", "like Sum")
    .out_optional("Y@GRAD", "like Sum")
    .out_optional("Scale@GRAD", "like Scale")
    .out_optional("Bias@GRAD", "like Bias")
    .with(norm_attrs)
    .effects(kEngineOnly)
    .infer(infer_grad)
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Backward(op); });

}  // namespace
}  // namespace anabranch::nn::add_layer_norm_op
