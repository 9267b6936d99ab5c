// Matrix product of two tensors that are flattened to matrices, the core of a fully connected layer.
#include <memory>

#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/gemm.h"
#include "ops/kernels/work.h"
#include "ops/math/flat.h"

namespace anabranch::math::mul_op {
namespace {

AB_OP(mul)
    .doc("Matrix product of X and Y, which are flattened to matrices: Out = X Y.")
    .in("X", "[rows..., columns...] float")
    .in("Y", "[rows..., columns...], dtype of X")
    .out("Out", "[rows... of X, columns... of Y], dtype of X")
    .with(flat_attrs)
    .ignores({"scale_x", "scale_y", "scale_out", "use_mkldnn", "force_fp32_output"})
    .traits(kRowWise | kBfloat16)
    .flops(product_flops)
    .infer([](InferContext& c) {
      const Flat flat(c.op());
      flat.check(c.in("X").shape, c.in("Y").shape);
      c.set_out("Out", flat.out(c.in("X").shape, c.in("Y").shape), c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .grad_reads({"X", "Y"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto product = std::make_shared<Gemm<T>>(1.0, operand_of(op.op()));
      return [=, flat = Flat(op.op()), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        product->run(c, flat.dims(c[x].shape(), c[y].shape()), c[x].data<T>(), c[y].data<T>(),
                     c[out].mutable_data<T>());
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [product = device::Gemm<T>(), flat = Flat(op.op()), x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](const DeviceContext& c) mutable {
        product.run(c, flat.dims(c[x].shape(), c[y].shape()), c[x], c[y], c[out]);
      };
    });

AB_GRAD(mul)
    .doc("X@GRAD = Out@GRAD Y^T, Y@GRAD = X^T Out@GRAD.")
    .grad_lod("X@GRAD", "X")
    .grad_lod("Y@GRAD", "Y")
    .grad(second_order::bilinear("X", "Y"))
    .traits(kBfloat16)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const Operand operand = operand_of(op.op());
      const auto of_x = std::make_shared<Gemm<T>>(1.0, operand), of_y = std::make_shared<Gemm<T>>(1.0, operand);
      return [=, flat = Flat(op.op()), x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const GemmDims d = flat.dims(c[x].shape(), c[y].shape());
        const T* from = c[dout].data<T>();
        if (c.needs(dx)) {
          of_x->run(c, {.m = d.m, .n = d.k, .k = d.n, .trans_b = true}, from, c[y].data<T>(), c[dx].mutable_data<T>());
        }
        if (c.needs(dy)) {
          of_y->run(c, {.m = d.k, .n = d.n, .k = d.m, .trans_a = true}, c[x].data<T>(), from, c[dy].mutable_data<T>());
        }
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [of_x = device::Gemm<T>(), of_y = device::Gemm<T>(), flat = Flat(op.op()), x = op.in("X"), y = op.in("Y"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) mutable {
        const GemmDims d = flat.dims(c[x].shape(), c[y].shape());
        if (c.needs(dx)) of_x.run(c, {.m = d.m, .n = d.k, .k = d.n, .trans_b = true}, c[dout], c[y], c[dx]);
        if (c.needs(dy)) of_y.run(c, {.m = d.k, .n = d.n, .k = d.m, .trans_a = true}, c[x], c[dout], c[dy]);
      };
    });

}  // namespace
}  // namespace anabranch::math::mul_op
