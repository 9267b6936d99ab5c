// Places a tensor in the first corner of a larger one.
#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"
#include "ops/tensor/part.h"

namespace anabranch::tensor::pad_constant_like_op {
namespace {

using device::OnDevice, device::OnHost;

template <class On, class T> Kernel pad_like_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), value = static_cast<T>(op.attr<float>("pad_value")), y = op.in("Y"),
          out = op.out("Out")](KernelContext& c) {
    int64_t at = 0;
    const Shape& part = c[y].shape();
    const auto loop = slice_loop(part, c[out].shape(), kOrigin.data(), &at);
    on.fill(c, &c[out], value);
    if (loop.total() > 0) on.strided(c, turned(loop), c[y], 0, &c[out], 0);
  };
}

AB_OP(pad_constant_like)
    .doc("Pads Y with a constant at the end of each axis up to the shape of X.")
    .in("X", "[...]: the tensor whose shape is used")
    .in("Y", "[...] float or int; no axis may be longer than that of X")
    .out("Out", "[shape of X], dtype of Y")
    .attr<float>("pad_value", 0.0f, "value of the elements outside Y")
    .infer([](InferContext& c) {
      const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
      AB_CHECK(x.rank() == y.rank(), ShapeMismatch, "X and Y must have the same rank, got {} and {}", x.str(), y.str());
      check_inside(x, kOrigin.data(), y);
      c.set_out("Out", x, c.in("Y").dtype);
      c.share_lod("Out", "X");
    })
    .grad_reads({"Y"})
    .grad_to({"Y"})
    .dtype_of_input("Y")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pad_like_kernel<OnHost, T>(op);
    })
    .device<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pad_like_kernel<OnDevice, T>(op);
    });

template <class On> Kernel corner_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), dout = op.in("Out@GRAD"), dy = op.out("Y@GRAD")](KernelContext& c) {
    int64_t at = 0;
    const Shape& part = c[dy].shape();
    const auto loop = slice_loop(part, c[dout].shape(), kOrigin.data(), &at);
    if (loop.total() > 0) on.strided(c, loop, c[dout], 0, &c[dy], 0);
  };
}

AB_GRAD(pad_constant_like)
    .doc("Y@GRAD = the corner of Out@GRAD that holds Y.")
    .infer([](InferContext& c) {
      const Shape& y = c.in("Y").shape;
      check_rank(c, "Out@GRAD", y.rank(), y.rank());
      check_inside(c.in("Out@GRAD").shape, kOrigin.data(), y);
      grad_as(c, "Y@GRAD", "Y", "Y");
      c.out("Y@GRAD").dtype = c.in("Out@GRAD").dtype;
    })
    .dtype_of_input("Out@GRAD")
    .cpu<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) { return corner_kernel<OnHost>(op); })
    .device<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) { return corner_kernel<OnDevice>(op); });

}  // namespace
}  // namespace anabranch::tensor::pad_constant_like_op
