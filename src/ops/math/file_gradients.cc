// The ops of second derivatives in 1.8.5.
#include "opdef/file_ops.h"
#include "ops/declare/second_of_files.h"

namespace anabranch::math::file_gradients_op {
namespace {

using second_order::OfFile;

size_t differentiated(ir::Block& block, size_t at) {
  OfFile op(block, at);
  std::string first = block.ops()[at]->type;
  op.differentiate(first.erase(first.rfind('_')));
  return op.put();
}

// X@GRAD = Out@GRAD / (2 Out); the op has X@GRAD instead of Out@GRAD.
size_t of_square_root(ir::Block& block, size_t at) {
  OfFile op(block, at);
  const std::string flow = op.in("DDX"), out = op.in("Out");
  if (!op.out("DDOut").empty()) {
    op.is("DDOut", op.make("sqrt_grad", {{"Out", {out}}, {"Out@GRAD", {flow}}}, "X@GRAD"));
  }
  if (!op.out("DOut").empty()) {
    const std::string product = op.make("elementwise_mul", {{"X", {op.in("DX")}}, {"Y", {flow}}});
    op.is("DOut", op.scale(op.make("elementwise_div", {{"X", {product}}, {"Y", {out}}}), -1));
  }
  return op.put();
}

// X@GRAD = Out@GRAD / Y and Y@GRAD = -X@GRAD Out, where the op has X@GRAD: DDOut = (DDX - Out DDY) / Y; Y gets that
// times -X@GRAD, and Out gets -X@GRAD DDY.
size_t of_quotient(ir::Block& block, size_t at) {
  OfFile op(block, at);
  const std::string x = op.in("DDX"), y = op.in("DDY"), divisor = op.in("Y");
  std::string top = x;
  if (!y.empty()) {
    top = op.make("elementwise_mul", {{"X", {op.in("Out")}}, {"Y", {y}}});
    if (x.empty()) top = op.scale(top, -1);
    if (!x.empty()) top = op.make("elementwise_sub", {{"X", {x}}, {"Y", {top}}});
  }
  const std::string whole = op.make("elementwise_div", {{"X", {top}}, {"Y", {divisor}}});
  op.is("DDOut", whole);
  if (op.out("Y@GRAD").empty() && op.out("DOut").empty()) return op.put();
  const std::string minus = op.scale(op.in("DX"), -1);
  const std::string into_y =
      op.make("elementwise_mul_grad", {{"X", {whole}}, {"Y", {divisor}}, {"Out@GRAD", {minus}}}, "Y@GRAD");
  op.is("Y@GRAD", into_y);
  if (y.empty()) {
    op.is("DOut", op.scale(minus, 0));
  } else {
    op.is("DOut", op.make("elementwise_mul", {{"X", {minus}}, {"Y", {y}}}));
  }
  return op.put();
}

void declare_second_gradients() {
  for (const char* type :
       {"conv2d_grad_grad", "conv3d_grad_grad", "elementwise_add_grad_grad", "elementwise_mul_grad_grad",
        "elementwise_sub_grad_grad", "elu_grad_grad", "instance_norm_grad_grad", "leaky_relu_grad_grad",
        "mul_grad_grad", "relu_grad_grad", "reshape2_grad_grad", "square_grad_grad"}) {
    declare_file_op(type, differentiated);
  }
  declare_file_op("elementwise_div_grad_grad", of_quotient);
  declare_file_op("sqrt_grad_grad", of_square_root);
}

AB_OPS(declare_second_gradients);

}  // namespace
}  // namespace anabranch::math::file_gradients_op
