// Matrix product of two tensors that are flattened to matrices: the heart of a fully connected layer.
#include <memory>

#include "ops/kernels/declare.h"
#include "ops/math/flat.h"

namespace anabranch {
namespace {

OpDef& with_attrs(OpDef& def) {
  def.attr<int32_t>("x_num_col_dims", 1, "X is a matrix with these leading axes as rows");
  def.attr<int32_t>("y_num_col_dims", 1, "Y is a matrix with these leading axes as rows");
  def.attr<float>("scale_x", 1.0f, "accepted, without effect");
  def.attr<std::vector<float>>("scale_y", {1.0f}, "accepted, without effect");
  def.attr<float>("scale_out", 1.0f, "accepted, without effect");
  return ignored_flags(def, {"use_mkldnn", "force_fp32_output"});
}

}  // namespace

AB_OP(mul)
    .doc("Out = X Y, with X and Y flattened to matrices.")
    .in("X", "[rows..., columns...] float")
    .in("Y", "[rows..., columns...] as X")
    .out("Out", "[X's rows..., Y's columns...]")
    .infer([](InferContext& c) {
      const Flat flat(c.op());
      flat.check(c.in("X").shape, c.in("Y").shape);
      c.set_out("Out", flat.out(c.in("X").shape, c.in("Y").shape), c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("mul_grad")
          .in("X", g.in("X"))
          .in("Y", g.in("Y"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"))
          .out("Y@GRAD", g.din("Y"));
    })
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const auto product = std::make_shared<Gemm<T>>(1.0, Flat::operand(op.op()));
      return [=, flat = Flat(op.op()), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        product->run(c, flat.dims(c[x].shape(), c[y].shape()), c[x].data<T>(), c[y].data<T>(),
                     c[out].mutable_data<T>());
      };
    });

AB_OP(mul_grad)
    .doc("X@GRAD = Out@GRAD Y^T, Y@GRAD = X^T Out@GRAD.")
    .in("X", "as of mul")
    .in("Y", "as of mul")
    .in("Out@GRAD", "as Out of mul")
    .out_optional("X@GRAD", "as X")
    .out_optional("Y@GRAD", "as Y")
    .infer([](InferContext& c) {
      const Flat flat(c.op());
      const Shape &x = c.in("X").shape, &y = c.in("Y").shape, &dout = c.in("Out@GRAD").shape;
      flat.check(x, y);
      AB_CHECK(compatible(flat.out(x, y), dout), ShapeMismatch, "mul_grad: X is {}, Y is {}, but Out@GRAD is {}",
               x.str(), y.str(), dout.str());
      if (c.has_out("X@GRAD")) c.same_as("X@GRAD", "X");
      if (c.has_out("Y@GRAD")) c.same_as("Y@GRAD", "Y");
    })
    .no_grad(kNoSecondOrder)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const Operand operand = Flat::operand(op.op());
      const auto of_x = std::make_shared<Gemm<T>>(1.0, operand), of_y = std::make_shared<Gemm<T>>(1.0, operand);
      return [=, flat = Flat(op.op()), x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const GemmDims d = flat.dims(c[x].shape(), c[y].shape());
        const T* from = c[dout].data<T>();
        if (c.wants(dx)) {
          of_x->run(c, {.m = d.m, .n = d.k, .k = d.n, .trans_b = true}, from, c[y].data<T>(), c[dx].mutable_data<T>());
        }
        if (c.wants(dy)) {
          of_y->run(c, {.m = d.k, .n = d.n, .k = d.m, .trans_a = true}, c[x].data<T>(), from, c[dy].mutable_data<T>());
        }
      };
    });

[[maybe_unused]] static const bool attrs_declared = (with_attrs(ab_op_mul), with_attrs(ab_op_mul_grad), true);

}  // namespace anabranch
