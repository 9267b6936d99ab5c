// A fully connected layer in one op, made of mul, elementwise_add and an activation by the pass fuse_fc: bias and
// activation are applied to a chunk of the product while it is in the cache. The same bits as the separate ops. On
// devices bias and relu are fused into the library's product.
#include <memory>

#include "ops/declare/declare.h"
#include "ops/device/gemm.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/work.h"
#include "ops/math/fc_parts.h"

namespace anabranch::math::fc_op {
namespace {

void add_to_all(KernelContext& c, float number, const TileOp* act, int64_t n, float* out) {
  c.parallel_for(n, kMathGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] += number;
    if (act) act->unary(out + begin, out + begin, end - begin);
  });
}

AB_OP(fused_fc)
    .doc("Out = activation(X Y + Bias), with X and Y flattened to matrices.")
    .in("X", "[rows..., columns...] float32; on devices 16-bit floats, too")
    .in("Y", "[rows, columns] like X")
    .in_optional("Bias", "[Y's columns], or [1]")
    .out("Out", "[X's rows..., Y's columns]")
    .with(flat_attrs)
    .attr<std::string>("activation", "", "op whose gradient reads only Out; empty: none")
    .effects(kEngineOnly)
    .traits(kRowWise | kBfloat16)
    .flops(product_flops)
    .infer([](InferContext& c) {
      const Flat flat(c.op());
      flat.check(c.in("X").shape, c.in("Y").shape);
      c.set_out("Out", flat.out(c.in("X").shape, c.in("Y").shape), c.in("X").dtype);
      c.share_lod("Out", "X");
      check_bias(c);
    })
    .no_grad("inserted after the gradients")
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      const auto product = std::make_shared<Gemm<float>>(1.0, operand_of(op.op()));
      const In x = op.in("X"), y = op.in("Y"), bias = op.in("Bias");
      const Out out = op.out("Out");
      const TileOp* act = activation(op, "");
      return [=, flat = Flat(op.op())](KernelContext& c) {
        const GemmDims d = flat.dims(c[x].shape(), c[y].shape());
        float* to = c[out].mutable_data<float>();
        const bool one = bias && c[bias].numel() != d.n;
        product->run(c, d, c[x].data<float>(), c[y].data<float>(), to,
                     {bias && !one ? c[bias].data<float>() : nullptr, act && !one ? act->unary : nullptr});
        if (one) add_to_all(c, *c[bias].data<float>(), act, d.m * d.n, to);
      };
    })
    .device<float, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto& act = op.attr<std::string>("activation");
      AB_CHECK(act.empty() || act == "relu", Unsupported, "on devices activation must be relu or none, got {}", act);
      return [product = device::FcProduct<T>(!act.empty()), flat = Flat(op.op()), x = op.in("X"), y = op.in("Y"),
              bias = op.in("Bias"), out = op.out("Out")](const DeviceContext& c) mutable {
        product.run(c, flat.dims(c[x].shape(), c[y].shape()), c[x], c[y], bias ? &c[bias] : nullptr, c[out]);
      };
    });

AB_GRAD(fused_fc)
    .doc(
        "Sum@GRAD = Out@GRAD times the activation's derivative, a function of Out; Bias@GRAD = its sum over rows, "
        "X@GRAD = Sum@GRAD Y^T, Y@GRAD = X^T Sum@GRAD. Without activation Sum@GRAD is Out@GRAD.")
    .in("X", "as in fused_fc")
    .in("Y", "as in fused_fc")
    .in_optional("Bias", "as in fused_fc")
    .in_optional("Out", "as in fused_fc, if there is an activation")
    .in("Out@GRAD", "like Out of fused_fc")
    .out_optional("Sum@GRAD", "like Out, if there is an activation")
    .out_optional("X@GRAD", "like X")
    .out_optional("Y@GRAD", "like Y")
    .out_optional("Bias@GRAD", "like Bias")
    .may_share("Out@GRAD", "Sum@GRAD")
    .effects(kEngineOnly)
    .traits(kBfloat16)
    .infer([](InferContext& c) {
      const Flat flat(c.op());
      const Shape &x = c.in("X").shape, &y = c.in("Y").shape, &dout = c.in("Out@GRAD").shape;
      flat.check(x, y);
      AB_CHECK(compatible(flat.out(x, y), dout), ShapeMismatch,
               "Out@GRAD must have the shape of Out for X {} and Y {}, got {}", x.str(), y.str(), dout.str());
      check_bias(c);
      if (c.has_in("Out")) check_same_shape(c, "Out", "Out@GRAD");
      grad_as(c, "Sum@GRAD", "Out", "Out@GRAD");
      if (c.has_out("X@GRAD")) c.same_as("X@GRAD", "X");
      if (c.has_out("Y@GRAD")) c.same_as("Y@GRAD", "Y");
      if (c.has_out("Bias@GRAD")) c.same_as("Bias@GRAD", "Bias");
    })
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      const Operand operand = operand_of(op.op());
      const auto of_x = std::make_shared<Gemm<float>>(1.0, operand), of_y = std::make_shared<Gemm<float>>(1.0, operand);
      const In x = op.in("X"), y = op.in("Y"), out = op.in("Out"), dout = op.in("Out@GRAD");
      const Out dsum = op.out("Sum@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"), dbias = op.out("Bias@GRAD");
      const TileOp* act = activation(op, "_grad");
      return [=, flat = Flat(op.op())](KernelContext& c) {
        const GemmDims d = flat.dims(c[x].shape(), c[y].shape());
        const float* from = c[dout].data<float>();
        if (act) {
          float* to = c[dsum].mutable_data<float>();
          run_loop(c, act->grain, d.m * d.n, c[out].data<float>(), from, to, act->binary);
          from = to;
        }
        if (c.needs(dbias)) {
          sum_to(c, Shape{d.m, d.n}, Shape{1, c[dbias].numel()}, from, c[dbias].mutable_data<float>());
        }
        if (c.needs(dx)) {
          of_x->run(c, {.m = d.m, .n = d.k, .k = d.n, .trans_b = true}, from, c[y].data<float>(),
                    c[dx].mutable_data<float>());
        }
        if (c.needs(dy)) {
          of_y->run(c, {.m = d.k, .n = d.n, .k = d.m, .trans_a = true}, c[x].data<float>(), from,
                    c[dy].mutable_data<float>());
        }
      };
    });

}  // namespace
}  // namespace anabranch::math::fc_op
