// Products of the channels of two stacks of feature maps, averaged over pixels.
#include <memory>
#include <utility>

#include "ops/declare/declare.h"
#include "ops/device/args_math.h"
#include "ops/device/gemm.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"

namespace anabranch::vision::fsp_op {
namespace {

struct Maps {
  int64_t batch, left, right, pixels;
  Maps(const Shape& x, const Shape& y) : batch(x[0]), left(x[1]), right(y[1]), pixels(x[2] * x[3]) {}
  int64_t x() const { return left * pixels; }  // elements of an image of X, of Y, of Out
  int64_t y() const { return right * pixels; }
  int64_t out() const { return left * right; }
};

// out[n] = left[n] right[n] / pixels for each image: matrix products.
template <class T>
void mean_products(const KernelContext& c, const Maps& m, const GemmDims& dims, Gemm<T>* gemm, const T* a, const T* b,
                   T* out) {
  gemm->run(c, dims, a, b, out);
  map(c, kCheapGrain, m.batch * dims.m * dims.n, out, out,
      [pixels = static_cast<T>(m.pixels)](T v) { return v / pixels; });
}

// The same on devices.
template <class T> class QueuedMeans {
 public:
  void run(const DeviceContext& c, const Maps& m, const GemmDims& dims, const Tensor& a, const Tensor& b, Tensor& out) {
    product_.run(c, dims, a, b, out);
    device::ScalarArgs scaled{};
    scaled.x = device::operand(std::as_const(out));
    scaled.y = device::operand(out);
    scaled.n = out.numel();
    scaled.p[0] = 1.0 / static_cast<double>(m.pixels);
    scaled.flags = 1;  // adds a bias of 0 after scaling
    c.launch(scale_, scaled);
  }

 private:
  device::Gemm<T> product_;
  ab_kernel scale_ = device::kernel_of<T>("scalar/scale");
};

GemmDims forward_dims(const Maps& m) {
  return {.m = m.left,
          .n = m.right,
          .k = m.pixels,
          .trans_b = true,
          .batch = m.batch,
          .batch_stride_a = m.x(),
          .batch_stride_b = m.y(),
          .batch_stride_c = m.out()};
}

GemmDims dims_by_x(const Maps& m) {
  GemmDims dims{.m = m.left, .n = m.pixels, .k = m.right, .batch = m.batch};
  dims.batch_stride_a = m.out(), dims.batch_stride_b = m.y(), dims.batch_stride_c = m.x();
  return dims;
}

GemmDims dims_by_y(const Maps& m) {
  GemmDims dims = dims_by_x(m);
  std::swap(dims.m, dims.k);
  std::swap(dims.batch_stride_b, dims.batch_stride_c);
  dims.trans_a = true;
  return dims;
}

AB_OP(fsp)
    .doc("Out[n, i, j] = the mean over all pixels of X[n, i] Y[n, j].")
    .source("Yim et al., A gift from knowledge distillation, CVPR 2017, doi:10.1109/CVPR.2017.754")
    .in("X", "[N, Cx, H, W] float")
    .in("Y", "[N, Cy, H, W] like X")
    .out("Out", "[N, Cx, Cy]")
    .traits(kRowWise)
    .infer([](InferContext& c) {
      check_rank(c, "X", 4, 4);
      check_rank(c, "Y", 4, 4);
      check_same_dtype(c, "X", "Y");
      const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
      check_shape(c, "Y", {x[0], y[1], x[2], x[3]});
      AB_CHECK(x[2] != 0 && x[3] != 0, InvalidArgument, "X must have at least one pixel, got {}", x.str());
      c.set_out("Out", {x[0], x[1], y[1]}, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .grad_reads({"X", "Y"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), y = op.in("Y"), out = op.out("Out"), gemm = std::make_shared<Gemm<T>>()](KernelContext& c) {
            const Maps m(c[x].shape(), c[y].shape());
            mean_products(c, m, forward_dims(m), gemm.get(), c[x].data<T>(), c[y].data<T>(), c[out].mutable_data<T>());
          };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [means = QueuedMeans<T>(), x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](const DeviceContext& c) mutable {
        const Maps m(c[x].shape(), c[y].shape());
        means.run(c, m, forward_dims(m), c[x], c[y], c[out]);
      };
    });

AB_GRAD(fsp)
    .doc("X@GRAD[n, i] = the sum over j of Out@GRAD[n, i, j] Y[n, j] / (H W); likewise Y@GRAD.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"),
              to_x = std::make_shared<Gemm<T>>(), to_y = std::make_shared<Gemm<T>>()](KernelContext& c) {
        const Maps m(c[x].shape(), c[y].shape());
        const T *a = c[x].data<T>(), *b = c[y].data<T>(), *d = c[dout].data<T>();
        if (T* to = needed<T>(c, dx)) mean_products(c, m, dims_by_x(m), to_x.get(), d, b, to);
        if (T* to = needed<T>(c, dy)) mean_products(c, m, dims_by_y(m), to_y.get(), d, a, to);
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [to_x = QueuedMeans<T>(), to_y = QueuedMeans<T>(), x = op.in("X"), y = op.in("Y"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) mutable {
        const Maps m(c[x].shape(), c[y].shape());
        if (c.needs(dx)) to_x.run(c, m, dims_by_x(m), c[dout], c[y], c[dx]);
        if (c.needs(dy)) to_y.run(c, m, dims_by_y(m), c[dout], c[x], c[dy]);
      };
    });

}  // namespace
}  // namespace anabranch::vision::fsp_op
