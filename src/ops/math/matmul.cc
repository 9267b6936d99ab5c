// Products of matrices, of batches of matrices, and of vectors.
#include <memory>

#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/gemm.h"
#include "ops/device/launch_fold.h"
#include "ops/device/scratch.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/work.h"
#include "ops/math/matmul_dims.h"

namespace anabranch::math::matmul_op {
namespace {

Product product_of(const InferContext& c) {
  const auto flag = [&](const char* name) { return c.op().has_attr(name) && c.op().attr<bool>(name); };
  for (const char* slot : {"X", "Y"}) {
    AB_CHECK(c.in(slot).shape.rank() >= 1, ShapeMismatch, "{} must have at least one axis, got a scalar", slot);
    AB_CHECK(c.in(slot).dtype == c.in("X").dtype, InvalidArgument, "X and Y must have the same dtype, got {} and {}",
             dtype_name(c.in("X").dtype), dtype_name(c.in("Y").dtype));
  }
  return {c.in("X").shape, c.in("Y").shape, flag("transpose_X"), flag("transpose_Y")};
}

void infer_product(InferContext& c) {
  const Product p = product_of(c);
  c.set_out("Out", p.out(), c.in("X").dtype);
  if (p.x.batch.rank() || (!p.x.vector && !p.x.transposed && !p.y.batch.rank())) c.share_lod("Out", "X");
}

// Gradient of one operand: a product of two others per matrix of the batch, summed if the operand is shared.
template <class T> class OperandGrad {
 public:
  OperandGrad(double alpha, Operand operand) : gemm_(alpha, operand) {}

  void run(const KernelContext& c, GemmDims d, bool shared, const T* a, const T* b, T* out) {
    d.batch_stride_c = d.m * d.n;
    if (!shared || d.batch == 1) return gemm_.run(c, d, a, b, out);
    const Shape all = {d.batch, d.m, d.n};
    each_.resize(all, dtype_of<T>);
    gemm_.run(c, d, a, b, each_.mutable_data<T>());
    sum_to(c, all, Shape{1, d.m, d.n}, each_.data<T>(), out);
  }

 private:
  Gemm<T> gemm_;
  Tensor each_;
};

// The same on a device.
template <class T> class OperandGradThere {
 public:
  explicit OperandGradThere(double alpha) : gemm_(alpha) {}

  void run(const DeviceContext& c, GemmDims d, bool shared, const Tensor& a, const Tensor& b, Tensor& out) {
    d.batch_stride_c = d.m * d.n;
    if (!shared || d.batch == 1) return gemm_.run(c, d, a, b, out);
    const Shape all = {d.batch, d.m, d.n};
    Tensor& each = each_.of(c, all, dtype_of<T>);
    gemm_.run(c, d, a, b, each);
    device::launch_fold(c, sum_, each, all, Shape{1, d.m, d.n}, out);
  }

 private:
  device::Gemm<T> gemm_;
  device::Scratch each_;
  ab_kernel sum_ = device::kernel_of<T>("fold_axes/sum");
};

// For elements, or for tensors on a device.
template <class Context, class Grad, class Operand, class Result>
void x_gradient(const Context& c, const Product& p, Grad* grad, const Operand& y, const Operand& dout, Result&& dx) {
  const int64_t batch = p.folds() ? 1 : p.batch().numel(), of_y = p.y.batch.rank() ? p.y.size() : 0;
  const int64_t m = p.folds() ? p.batch().numel() * p.x.rows : p.x.rows, of_dout = m * p.y.cols;
  const bool shared = !p.x.batch.rank();
  if (p.x.transposed) {  // the gradient of X^T is dOut Y^T, so that of X is Y dOut^T
    grad->run(c,
              {.m = p.x.cols,
               .n = p.x.rows,
               .k = p.y.cols,
               .trans_a = p.y.transposed,
               .trans_b = true,
               .batch = batch,
               .batch_stride_a = of_y,
               .batch_stride_b = of_dout},
              shared, y, dout, dx);
  } else {
    grad->run(c,
              {.m = m,
               .n = p.x.cols,
               .k = p.y.cols,
               .trans_b = !p.y.transposed,
               .batch = batch,
               .batch_stride_a = of_dout,
               .batch_stride_b = of_y},
              shared, dout, y, dx);
  }
}

template <class Context, class Grad, class Operand, class Result>
void y_gradient(const Context& c, const Product& p, Grad* grad, const Operand& x, const Operand& dout, Result&& dy) {
  const int64_t batch = p.folds() ? 1 : p.batch().numel(), of_x = p.x.batch.rank() ? p.x.size() : 0;
  const int64_t m = p.folds() ? p.batch().numel() * p.x.rows : p.x.rows, of_dout = m * p.y.cols;
  const bool shared = !p.y.batch.rank();
  if (p.y.transposed) {
    grad->run(c,
              {.m = p.y.cols,
               .n = p.y.rows,
               .k = m,
               .trans_a = true,
               .trans_b = p.x.transposed,
               .batch = batch,
               .batch_stride_a = of_dout,
               .batch_stride_b = of_x},
              shared, dout, x, dy);
  } else {
    grad->run(c,
              {.m = p.y.rows,
               .n = p.y.cols,
               .k = m,
               .trans_a = !p.x.transposed,
               .batch = batch,
               .batch_stride_a = of_x,
               .batch_stride_b = of_dout},
              shared, x, dout, dy);
  }
}

struct Options {
  bool transpose_x = false, transpose_y = false;
  double alpha = 1.0;
  Operand operand;
  explicit Options(const ir::Op& op) : operand(operand_of(op)) {
    if (!op.has_attr("alpha")) return;
    transpose_x = op.attr<bool>("transpose_X");
    transpose_y = op.attr<bool>("transpose_Y");
    alpha = static_cast<double>(op.attr<float>("alpha"));
    AB_CHECK(op.attr<int32_t>("head_number") == 1, Unsupported, "head_number must be 1, got {}",
             op.attr<int32_t>("head_number"));
  }
};

void product(OpDef& def) {
  def.in("X", "[..., m, k] float")
      .in("Y", "[..., k, n], dtype of X")
      .out("Out", "[..., m, n], dtype of X")
      .infer(infer_product);
  def.flops(product_flops).grad_reads({"X", "Y"});
  def.cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    const Options o(op.op());
    const auto gemm = std::make_shared<Gemm<T>>(o.alpha, o.operand);
    return [=, x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
      const Product p(c[x].shape(), c[y].shape(), o.transpose_x, o.transpose_y);
      gemm->run(c, p.dims(), c[x].data<T>(), c[y].data<T>(), c[out].mutable_data<T>());
    };
  });
  def.device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    const Options o(op.op());
    return [gemm = device::Gemm<T>(o.alpha), o, x = op.in("X"), y = op.in("Y"),
            out = op.out("Out")](const DeviceContext& c) mutable {
      const Product p(c[x].shape(), c[y].shape(), o.transpose_x, o.transpose_y);
      gemm.run(c, p.dims(), c[x], c[y], c[out]);
    };
  });
}

void product_gradient(OpDef& def) {
  def.grad(second_order::bilinear("X", "Y"));
  def.cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    const Options o(op.op());
    const auto of_x = std::make_shared<OperandGrad<T>>(o.alpha, o.operand);
    const auto of_y = std::make_shared<OperandGrad<T>>(o.alpha, o.operand);
    return [=, x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
            dy = op.out("Y@GRAD")](KernelContext& c) {
      const Product p(c[x].shape(), c[y].shape(), o.transpose_x, o.transpose_y);
      const T* from = c[dout].data<T>();
      if (c.needs(dx)) x_gradient(c, p, of_x.get(), c[y].data<T>(), from, c[dx].mutable_data<T>());
      if (c.needs(dy)) y_gradient(c, p, of_y.get(), c[x].data<T>(), from, c[dy].mutable_data<T>());
    };
  });
  def.device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    const Options o(op.op());
    return [o, of_x = OperandGradThere<T>(o.alpha), of_y = OperandGradThere<T>(o.alpha), x = op.in("X"), y = op.in("Y"),
            dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) mutable {
      const Product p(c[x].shape(), c[y].shape(), o.transpose_x, o.transpose_y);
      if (c.needs(dx)) x_gradient(c, p, &of_x, c[y], c[dout], c[dx]);
      if (c.needs(dy)) y_gradient(c, p, &of_y, c[x], c[dout], c[dy]);
    };
  });
}

AB_OP(matmul)
    .doc("Out = alpha X Y; leading axes are a batch, a rank-1 X is a row, a rank-1 Y a column.")
    .with(product)
    .traits(kBfloat16)
    .attr<bool>("transpose_X", false, "transposes the last two axes of X")
    .attr<bool>("transpose_Y", false, "transposes the last two axes of Y")
    .attr<float>("alpha", 1.0f, "factor for the product")
    .attr<int32_t>("head_number", 1, "must be 1")
    .ignores({"Scale_x", "Scale_y", "Scale_out", "fused_reshape_Out", "fused_transpose_Out"})
    .ignores({"use_mkldnn", "use_quantizer", "force_fp32_output"});
AB_GRAD(matmul)
    .doc("X@GRAD = alpha Out@GRAD Y^T, Y@GRAD = alpha X^T Out@GRAD.")
    .with(product_gradient)
    .traits(kBfloat16);

AB_OP(bmm).doc("Matrix product of each pair of matrices of two batches: Out = X Y.").with(product);
AB_GRAD(bmm).doc("X@GRAD = Out@GRAD Y^T, Y@GRAD = X^T Out@GRAD.").with(product_gradient);

}  // namespace
}  // namespace anabranch::math::matmul_op
