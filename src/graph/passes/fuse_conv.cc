// Fuses a convolution with the ops after it: the sum with a bias, the sum with another image, relu. The result is
// a conv2d_fusion. If the program never writes the filter, it is packed into the kernels' layout once.
#include "graph/match.h"
#include "graph/passes/constants.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace conv {
namespace {

enum Name { kInput, kFilter, kBias, kResidual };
enum Part { kConv, kAddBias, kAddImage, kRelu };

bool is_image(const Graph& graph, int var) { return is_float(graph, var) && graph.vars[var].desc.shape.rank() == 4; }
bool is_conv(const GraphNode& node) { return node.op->type == "conv2d" || node.op->type == "depthwise_conv2d"; }

bool of_images(const Match& m, const GraphNode&) {
  return is_image(m.graph(), m[kInput]) && is_image(m.graph(), m[kFilter]);
}
bool makes_image(const Match& m, const GraphNode&) { return is_image(m.graph(), m.end()); }

bool adds_to_channels(const Match& m, const GraphNode& add) {
  const ir::Var& bias = m.desc(kBias);
  const bool last = m.node(kConv)->op->attr<std::string>("data_format") == "NHWC";
  const auto axis = add.op->attr<int32_t>("axis");
  return bias.dtype == DType::kFloat32 && (last ? axis == 3 || axis == -1 : axis == 1) && bias.shape.rank() == 1 &&
         bias.shape[0] == m.desc(kFilter).shape[0];
}

// The variable from which `var` has its number of samples.
int batch_of(const Match& m, int var) {
  constexpr int kFar = 64;
  for (int steps = 0; steps < kFar; ++steps) {
    const int i = m.uses().writer(var);
    if (i < 0) return var;
    const GraphNode& node = m.graph().nodes[i];
    const std::string& type = node.op->type;
    if (!is_conv(node) && type != "relu" && type != "batch_norm" && type != "pool2d") return var;
    var = input_var(node, is_conv(node) ? "Input" : "X");
    if (var < 0) return -1;
  }
  return -1;
}

// Images of one declared shape have equal shapes if their samples come from the same source.
bool adds_like_image(const Match& m, const GraphNode&) {
  const int other = m[kResidual], image = m.operand(kAddImage);
  if (!is_image(m.graph(), other) || other == image) return false;
  const Shape& shape = m.graph().vars[image].desc.shape;
  if (!(m.desc(kResidual).shape == shape) || !shape.slice(1, 4).known()) return false;
  const int batch = batch_of(m, m.result(kConv));
  return shape.known() || (batch >= 0 && batch == batch_of(m, other));
}

const Pattern& chain() {
  constexpr const char* kNoImage = "the result is not a float32 image";
  static const Pattern pattern = down(op({"conv2d", "depthwise_conv2d"})
                                          .in("Input", kInput)
                                          .in("Filter", kFilter)
                                          .makes("Output")
                                          .when(of_images, "its operands are not float32 images")
                                          .when(makes_image, kNoImage))
                                     .maybe(op("elementwise_add")
                                                .reads("X")
                                                .in("Y", kBias)
                                                .makes("Out")
                                                .when(adds_to_channels, "Y does not have one number for each channel")
                                                .when(makes_image, kNoImage))
                                     .maybe(op("elementwise_add")
                                                .either("X", "Y", kResidual)
                                                .makes("Out")
                                                .when(adds_like_image, "the images may differ in shape")
                                                .when(makes_image, kNoImage))
                                     .maybe(op("relu").reads("X").makes("Out").when(makes_image, kNoImage))
                                     .or_alone();
  return pattern;
}

bool replace(GraphEdit& edit, const Match& m) {
  const bool constant = is_constant(m, kFilter);
  if (m.parts().size() < 2 && !constant) return false;
  NodeBuilder node(m.graph(), "conv2d_fusion", *m.node(kConv));
  node.copy({"strides", "paddings", "padding_algorithm", "data_format", "dilations", "groups"})
      .attr("activation", std::string(m.has(kRelu) ? "relu" : ""))
      .attr("constant_filter", constant)
      .in("Input", m[kInput])
      .in("Filter", m[kFilter])
      .in("Bias", m[kBias])
      .in("ResidualData", m[kResidual])
      .out("Output", m.end());
  if (m.node(kConv)->op->has_attr("bfloat16")) node.copy({"bfloat16"});
  edit.replace(m.parts(), node.done());
  return true;
}

int run(Graph& graph, const PassContext& context) { return fuse(graph, context, {{chain(), replace}}); }

}  // namespace
}  // namespace conv

const Pass kFuseConv = {
    .name = "fuse_conv",
    .what = "fuses a convolution with the bias, sum and relu after it, and packs constant filters once",
    .tolerance = "bit-equal",
    .needs = AB_SWITCH(fuse_elewise_add_act_ops),
    .in_bodies = true,
    .run = conv::run};

}  // namespace anabranch
