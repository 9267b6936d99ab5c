// elementwise_add, with a dropout of one of its operands, and layer_norm of the sum become fused_add_layer_norm, and
// their gradients fused_add_layer_norm_grad. A sum that other nodes read, or that is fetched, keeps the ops separate.
#include "graph/match.h"
#include "graph/passes/passes.h"
#include "graph/passes/patterns/dropout.h"

namespace anabranch {
namespace residual_norm {
namespace {

enum Name { kOther, kMask, kMean, kVariance };
enum Part { kNorm, kAdd, kDrop };

bool has_role_of_norm(const Match& m, const GraphNode& node) { return node.role() == m.node(kNorm)->role(); }

bool adds_alike(const Match& m, const GraphNode& add) {
  const int side = m.operand(kAdd), other = m[kOther];
  if (!is_float(m.graph(), side) || !is_float(m.graph(), other) || side == other) return false;
  const ir::Var &a = m.graph().vars[side].desc, &b = m.desc(kOther);
  const auto axis = add.op->attr<int32_t>("axis");
  return a.lod_level == 0 && b.lod_level == 0 && (axis == -1 || axis == 0) && a.shape == b.shape;
}

const Pattern& chain() {
  static const Pattern pattern =
      up(op("layer_norm").reads("X").out("Mean", kMean).out("Variance", kVariance).makes("Y"))
          .then(op("elementwise_add")
                    .either("Y", "X", kOther)
                    .makes("Out")
                    .may_end_gradient()
                    .when(adds_alike, "its operands are not float32 tensors of one shape without sequences")
                    .when(has_role_of_norm, "the ops have different roles"))
          .maybe(op("dropout")
                     .reads("X")
                     .inner("Mask", kMask)
                     .makes("Out")
                     .when([](const Match&, const GraphNode& drop) { return draws_anywhere(drop); },
                           "it would draw other numbers")
                     .when(has_role_of_norm, "the ops have different roles"))
          .each(is_float, "the value between them is not a float32 tensor")
          .with_gradient();
  return pattern;
}

bool replace(GraphEdit& edit, const Match& m) {
  const GraphNode &norm = *m.node(kNorm), *drop = m.node(kDrop);
  const bool trains = m.has_gradient();
  const int mask = trains && drop && !drop->op->attr<bool>("is_test") ? m[kMask] : -1;
  const auto make = [&](const char* type, const GraphNode& like) {
    NodeBuilder made(m.graph(), type, like);
    made.copy({"epsilon", "begin_norm_axis"});
    tell_dropout(made, drop);
    return made.in("Scale", input_var(norm, "Scale")).in("Bias", input_var(norm, "Bias"));
  };
  NodeBuilder forward = make("fused_add_layer_norm", norm);
  forward.in("X", m[kOther]).in("Y", m.end()).out("Out", m.result(kNorm)).out("Sum", trains ? m.result(kAdd) : -1);
  GraphNode made = forward.out("Mean", m[kMean]).out("Variance", m[kVariance]).out("Mask", mask).done();
  if (trains) {
    const GraphNode& grad = *m.gradient_node(kNorm);
    NodeBuilder backward = make("fused_add_layer_norm_grad", grad);
    backward.attr("op_role_var", role_vars_of(m.graph(), m.gradient_parts()));
    backward.in("Sum", m.result(kAdd)).in("Mean", m[kMean]).in("Variance", m[kVariance]).in("Mask", mask);
    backward.in("Out@GRAD", m.result_gradient()).out("X@GRAD", m.gradient(kOther)).out("Y@GRAD", m.end_gradient());
    backward.out("Scale@GRAD", output_var(grad, "Scale@GRAD")).out("Bias@GRAD", output_var(grad, "Bias@GRAD"));
    edit.replace(m.gradient_parts(), backward.done());
  }
  edit.replace(m.parts(), std::move(made));
  return true;
}

int run(Graph& graph, const PassContext& context) { return fuse(graph, context, {{chain(), replace}}); }

}  // namespace
}  // namespace residual_norm

const Pass kFuseLayerNorm = {.name = "fuse_layer_norm",
                             .what = "fuses layer_norm with the sum and the dropout before it",
                             .tolerance = "bit-equal",
                             .needs_flag = "FLAGS_fuse_layer_norm",
                             .run = residual_norm::run};

}  // namespace anabranch
