// Ops that move elements of images between channels, rows and columns: pixel_shuffle, space_to_depth, shuffle_channel.
// Each is one strided copy, and its gradient the inverse copy.
#include <limits>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/device/launch_index.h"
#include "ops/kernels/strided_copy.h"
#include "ops/vision/extents.h"

namespace anabranch::vision::rearrange_op {
namespace {

void check_divides(const char* what, int64_t by, int64_t extent, const char* name, const Shape& x) {
  AB_CHECK(extent < 0 || extent % by == 0, InvalidArgument, "{} must divide the {} of {}, got {}", what, name, x.str(),
           by);
}

// An extent divided by a number, if it is known.
int64_t shared_by(int64_t extent, int64_t by) { return extent < 0 ? kUnknown : extent / by; }

// The copy between images of many channels, [N, f * f * C, H, W], and large ones, [N, C, f * H, f * W]: channel c *
// c_step + (i * f + j) * ij_step goes to the pixels (i, j) of each square of channel c. Operand 0 is the large image.
NdLoop<2> squares(int64_t batch, int64_t channels, int64_t rows, int64_t columns, int64_t f, int64_t c_step,
                  int64_t ij_step) {
  const int64_t plane = rows * columns, width = columns * f;
  NdLoop<2> loop;
  loop.add_axis(batch, {channels * plane * f * f, channels * plane * f * f});
  loop.add_axis(channels, {plane * f * f, c_step * plane});
  loop.add_axis(rows, {width * f, columns});
  loop.add_axis(f, {width, f * ij_step * plane});
  loop.add_axis(columns, {f, 1});
  loop.add_axis(f, {1, ij_step * plane});
  return loop;
}

// ---- pixel_shuffle

int64_t factor(const ir::Op& op) { return op.attr<int32_t>("upscale_factor"); }

Shape enlarged(const InferContext& c) {
  const Shape& x = c.in("X").shape;
  const int64_t f = factor(c.op());
  check_divides("the square of upscale_factor", f * f, x[1], "channels", x);
  return {x[0], shared_by(x[1], f * f), product(x[2], f), product(x[3], f)};
}

Shape shrunk(const InferContext& c) {
  const Shape& out = c.in("Out@GRAD").shape;
  const int64_t f = factor(c.op());
  check_divides("upscale_factor", f, out[2], "height", out);
  check_divides("upscale_factor", f, out[3], "width", out);
  return {out[0], product(out[1], f * f), shared_by(out[2], f), shared_by(out[3], f)};
}

NdLoop<2> enlarging(const ir::Op& op, const Shape& x) {
  const int64_t f = factor(op);
  return squares(x[0], x[1] / (f * f), x[2], x[3], f, f * f, 1);
}

// ---- space_to_depth

int64_t block(const ir::Op& op) { return op.attr<int64_t>("blocksize"); }

Shape deepened(const InferContext& c) {
  const Shape& x = c.in("X").shape;
  const int64_t f = block(c.op());
  check_divides("the square of blocksize", f * f, x[1], "channels", x);
  check_divides("blocksize", f, x[2], "height", x);
  check_divides("blocksize", f, x[3], "width", x);
  return {x[0], product(x[1], f * f), shared_by(x[2], f), shared_by(x[3], f)};
}

// Fluid 1.8.5 enlarges like pixel_shuffle, with channels in another order, and reads the result as [N, C f^2, ...].
NdLoop<2> deepening(const ir::Op& op, const Shape& x) {
  const int64_t f = block(op), made = x[1] / (f * f);
  return squares(x[0], made, x[2], x[3], f, 1, made);
}

// ---- shuffle_channel

Shape grouped(const InferContext& c, const char* slot) {
  const Shape& x = c.in(slot).shape;
  check_divides("group", c.attr<int32_t>("group"), x[1], "channels", x);
  return x;
}

Shape shuffled(const InferContext& c) { return grouped(c, "X"); }
Shape shuffled_back(const InferContext& c) { return grouped(c, "Out@GRAD"); }

NdLoop<2> shuffling(const ir::Op& op, const Shape& x) {
  const int64_t groups = op.attr<int32_t>("group"), members = x[1] / groups, plane = x[2] * x[3];
  NdLoop<2> loop;
  loop.add_axis(x[0], {x[1] * plane, x[1] * plane});
  loop.add_axis(members, {groups * plane, plane});
  loop.add_axis(groups, {plane, members * plane});
  loop.add_axis(plane, {1, 1});
  return loop;
}

// ---- declarations

using Copy = NdLoop<2> (*)(const ir::Op& op, const Shape& x);

struct Rearrangement {
  const char *type, *doc, *source, *out;
  Shape (*shape)(const InferContext&);
  Copy copy;                                     // operand 0 is Out, operand 1 is X
  Shape (*back)(const InferContext&) = nullptr;  // the shape of X from that of Out, if the gradient does not read X
  bool keeps_lod = false;
};

// Out from X, or back: the gradient of X from that of Out.
Kernel copies(const KernelArgs& op, Copy copy, const char* from, const char* to, bool back) {
  return [o = op.op(), copy, back, x = op.in(from), out = op.out(to)](KernelContext& c) {
    if (c[out].numel() == 0) return;
    const NdLoop<2> loop = copy(o, back ? c[out].shape() : c[x].shape());
    strided_copy(c, back ? turned(loop) : loop, c[x], 0, &c[out], 0);
  };
}

Kernel queued_copies(const KernelArgs& op, Copy copy, const char* from, const char* to, bool back) {
  return [kernel = device_kernel(device::stem_of_size("copy", dtype_size(op.dtype()))), o = op.op(), copy, back,
          x = op.in(from), out = op.out(to)](const DeviceContext& c) {
    if (c[out].numel() == 0) return;
    const NdLoop<2> loop = copy(o, back ? c[out].shape() : c[x].shape());
    device::CopyArgs a{device::operand(c[x]), device::operand(c[out]), 0, 0, {}, 0};
    a.axes = device::axes_of(back ? turned(loop) : loop);
    c.launch(kernel, a);
  };
}

template <class... Ts> OpDef& declare(const Rearrangement& row) {
  OpDef& def = declare_op(row.type, __FILE__).doc(row.doc).source(row.source);
  def.in("X", "[N, C, H, W] float").out("Out", row.out).traits(kRowWise);
  def.infer([shape = row.shape, keeps_lod = row.keeps_lod](InferContext& c) {
    check_rank(c, "X", 4, 4);
    c.set_out("Out", shape(c), c.in("X").dtype);
    if (keeps_lod) c.share_lod("Out", "X");
  });
  def.grad_reads(row.back ? std::vector<std::string>{} : std::vector<std::string>{"X"});
  const auto forward = [copy = row.copy](auto, const KernelArgs& op) { return copies(op, copy, "X", "Out", false); };
  const auto backward = [copy = row.copy](auto, const KernelArgs& op) {
    return copies(op, copy, "Out@GRAD", "X@GRAD", true);
  };
  def.cpu<Ts...>(forward);
  device::offer<Ts...>(
      def, [copy = row.copy](auto, const KernelArgs& op) { return queued_copies(op, copy, "X", "Out", false); });
  OpDef& grad = declare_gradient(row.type, __FILE__);
  grad.doc("X@GRAD = Out@GRAD, each element at its source.").template cpu<Ts...>(backward);
  device::offer<Ts...>(grad, [copy = row.copy](auto, const KernelArgs& op) {
    return queued_copies(op, copy, "Out@GRAD", "X@GRAD", true);
  });
  if (row.back) {
    grad.infer([back = row.back](InferContext& c) {
      check_rank(c, "Out@GRAD", 4, 4);
      c.set_out("X@GRAD", back(c), c.in("Out@GRAD").dtype);
    });
  }
  return def;
}

void declare_all() {
  declare<float, double>({.type = "pixel_shuffle",
                          .doc = "Moves channels into pixels: Out[n, c, h r + i, w r + j] = X[n, c r^2 + i r + j, h, "
                                 "w] with r = upscale_factor.",
                          .source = "Shi et al., CVPR 2016, arXiv:1609.05158",
                          .out = "[N, C / r^2, r H, r W], dtype of X",
                          .shape = enlarged,
                          .copy = enlarging,
                          .back = shrunk})
      .attr<int32_t>("upscale_factor", 1, "factor r by which height and width grow", at_least("upscale_factor", 1));
  declare<float, double, int32_t, int64_t>(
      {.type = "space_to_depth",
       .doc = "Moves blocks of pixels into channels. With b = blocksize, Out has the elements of a tensor [N, C / b^2, "
              "b H, b W] in which pixel (b h + i, b w + j) of channel c is X[n, (b i + j) C / b^2 + c, h, w].",
       .source = "Redmon & Farhadi, YOLO9000, CVPR 2017, arXiv:1612.08242",
       .out = "[N, C b^2, H / b, W / b], dtype of X",
       .shape = deepened,
       .copy = deepening,
       .keeps_lod = true})
      .attr<int64_t>("blocksize", 2, "divisor b of height and width",
                     within<int64_t>("blocksize", 2, std::numeric_limits<int32_t>::max()));
  declare<float, double>(
      {.type = "shuffle_channel",
       .doc = "Interleaves the channels of g groups: Out[n, m g + k] = X[n, k C / g + m] with g = group.",
       .source = "Zhang et al., ShuffleNet, CVPR 2018, arXiv:1707.01083",
       .out = "like X",
       .shape = shuffled,
       .copy = shuffling,
       .back = shuffled_back})
      .attr<int32_t>("group", 1, "number of groups g; it must divide the number of channels", at_least("group", 1));
}

AB_OPS(declare_all);

}  // namespace
}  // namespace anabranch::vision::rearrange_op
