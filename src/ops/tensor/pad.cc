// Pads tensors with a constant border.
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/tensor/border.h"

namespace anabranch::tensor::pad_op {
namespace {

using device::OnDevice, device::OnHost;

Border pad_border(const std::vector<int64_t>& paddings, const Shape& x) {
  AB_CHECK(static_cast<int>(paddings.size()) == 2 * x.rank(), InvalidArgument,
           "paddings of X {} must be {} numbers, got {}", x.str(), 2 * x.rank(), paddings.size());
  Border b;
  for (int i = 0; i < x.rank(); ++i) {
    b.before[i] = paddings[static_cast<size_t>(i) * 2];
    b.after[i] = paddings[static_cast<size_t>(i) * 2 + 1];
    AB_CHECK(b.before[i] >= 0 && b.after[i] >= 0, InvalidArgument,
             "paddings of axis {} must not be negative, got {} and {}", i, b.before[i], b.after[i]);
  }
  return b;
}

// The loop over X: operand 0 is X, dense; operand 1 its region in the padded tensor, starting at *offset.
NdLoop<2> inside_loop(const Shape& x, const Shape& out, const Border& b, int64_t* offset) {
  const auto mine = dense_strides(x), theirs = dense_strides(out);
  NdLoop<2> loop;
  *offset = 0;
  for (int i = 0; i < x.rank(); ++i) {
    *offset += b.before[i] * theirs[i];
    loop.add_axis(x[i], {mine[i], theirs[i]});
  }
  return loop;
}

template <class On, class T> Kernel pad_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), paddings = int_attr(op.op(), "paddings"),
          value = static_cast<T>(op.attr<float>("pad_value")), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    int64_t offset = 0;
    const auto inside = inside_loop(c[x].shape(), c[out].shape(), pad_border(paddings, c[x].shape()), &offset);
    on.fill(c, &c[out], value);
    if (inside.total() > 0) on.strided(c, turned(inside), c[x], 0, &c[out], offset);
  };
}

AB_OP(pad)
    .doc("Surrounds X with a border of constant value.")
    .in("X", "[...] any")
    .out("Out", "[extents of X plus paddings], dtype of X")
    .required_attr("paddings", AttrType::kInts,
                   "number of elements before and after axis 0, before and after axis 1, and so on")
    .attr<float>("pad_value", 0.0f, "value of the border")
    .infer([](InferContext& c) {
      const Shape& x = c.in("X").shape;
      c.set_out("Out", padded(x, pad_border(int_attr(c.op(), "paddings"), x)), c.in("X").dtype);
      if (c.out("Out").shape.rank() && c.out("Out").shape[0] == x[0]) c.share_lod("Out", "X");
    })
    .grad_reads({})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pad_kernel<OnHost, T>(op);
    })
    .device<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pad_kernel<OnDevice, T>(op);
    });

template <class On> Kernel unpad_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), paddings = int_attr(op.op(), "paddings"), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD")](KernelContext& c) {
    int64_t offset = 0;
    const Shape &x = c[dx].shape(), &out = c[dout].shape();
    const auto loop = inside_loop(x, out, pad_border(paddings, x), &offset);
    if (loop.total() > 0) on.strided(c, loop, c[dout], offset, &c[dx], 0);
  };
}

AB_GRAD(pad)
    .doc("X@GRAD = Out@GRAD without the border.")
    .grad(pad_with_zeros)
    .infer([](InferContext& c) {
      const Shape& out = c.in("Out@GRAD").shape;
      const Border b = pad_border(int_attr(c.op(), "paddings"), out);
      Shape x = out;
      for (int i = 0; i < out.rank(); ++i) {
        if (out[i] < 0) continue;
        AB_CHECK(out[i] >= b.before[i] + b.after[i], ShapeMismatch,
                 "Out@GRAD must not be smaller than the border, got {} and border {} and {}", out.str(), b.before[i],
                 b.after[i]);
        x.set(i, out[i] - b.before[i] - b.after[i]);
      }
      c.set_out("X@GRAD", x, c.in("Out@GRAD").dtype);
    })
    .cpu_any(unpad_kernel<OnHost>)
    .device_any(unpad_kernel<OnDevice>);

}  // namespace
}  // namespace anabranch::tensor::pad_op
