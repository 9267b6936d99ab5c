// The quantization of an activation with a scale that no longer changes + mul with the levels of weights + the
// conversion back + elementwise_add of a bias + an activation become quantized_fc, which multiplies integers.
#include "base/cpu.h"
#include "graph/match.h"
#include "graph/passes/constants.h"
#include "graph/passes/passes.h"
#include "graph/passes/patterns/fc_bias.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace quantized {
namespace {

enum Name { kX, kScale, kKeptScale, kY, kRange, kBias };
enum Part { kQuantize, kMul, kBack, kAdd, kAct };

constexpr int32_t kMostBits = 8;  // of an integer of the products

bool keeps_scale(const Match& m, const GraphNode& quantize) {
  for (const char* slot : {"OutScales", "OutState", "OutAccum"}) {
    if (output_var(quantize, slot) >= 0) return false;
  }
  return quantize.op->attr<bool>("is_test") && m[kKeptScale] == m[kScale];
}
bool has_few_bits(const Match& m, const GraphNode& quantize) {
  return quantize.op->attr<int32_t>("bit_length") <= kMostBits && is_float(m.graph(), m[kX]);
}

bool multiplies(const Match& m, const GraphNode& mul) {
  return mul.op->attr<int32_t>("y_num_col_dims") == 1 && is_float(m.graph(), m[kY]) && m.desc(kY).shape.rank() == 2;
}
bool by_constants(const Match& m, const GraphNode&) { return is_constant(m, kY); }
bool by_the_scale(const Match& m, const GraphNode&) { return m[kRange] == m[kScale]; }

bool adds_bias(const Match& m, const GraphNode& add) {
  return is_float(m.graph(), m[kBias]) && adds_to_columns(add, m.desc(kBias), *m.node(kMul), m.desc(kY));
}

const Pattern& layer() {
  static const Pattern pattern =
      down(op({"fake_quantize_range_abs_max", "fake_quantize_moving_average_abs_max"})
               .in("X", kX)
               .in("InScale", kScale)
               .out("OutScale", kKeptScale)
               .makes("Out")
               .when(keeps_scale, "the scale changes while the program runs")
               .when(has_few_bits, "the levels have more than 8 bits"))
          .then(op("mul")
                    .reads("X")
                    .in("Y", kY)
                    .makes("Out")
                    .when(multiplies, "Y is not a matrix of floats")
                    .when(by_constants, "an op writes Y, or there are several replicas"))
          .then(op("fake_dequantize_max_abs")
                    .reads("X")
                    .in("Scale", kRange)
                    .makes("Out")
                    .when(by_the_scale, "Scale is not the scale of the quantization"))
          .maybe(op("elementwise_add")
                     .reads("X")
                     .in("Y", kBias)
                     .makes("Out")
                     .when(adds_bias, "Y does not have one number for each column"))
          .maybe(op([](const OpDef& def) { return def.is_activation(); }).reads("X").makes("Out"));
  return pattern;
}

bool replace(GraphEdit& edit, const Match& m) {
  NodeBuilder node(m.graph(), "quantized_fc", *m.node(kMul));
  node.copy({"x_num_col_dims", "y_num_col_dims"})
      .attr("bit_length", m.node(kQuantize)->op->attr<int32_t>("bit_length"))
      .attr("max_range", m.node(kBack)->op->attr<float>("max_range"))
      .attr("activation", m.has(kAct) ? m.node(kAct)->op->type : "")
      .in("X", m[kX])
      .in("Scale", m[kScale])
      .in("Y", m[kY])
      .in("Bias", m[kBias])
      .out("Out", m.end());
  edit.replace(m.parts(), node.done());
  return true;
}

const char* skip(const PassContext&) {
  return cpu_has_int8() ? nullptr : "this processor has no instructions for products of 8-bit integers";
}

int run(Graph& graph, const PassContext& context) { return fuse(graph, context, {{layer(), replace}}); }

}  // namespace
}  // namespace quantized

const Pass kFuseQuantized = {.name = "fuse_quantized",
                             .what = "multiplies the integers of a quantized fully connected layer",
                             .tolerance = "bit-equal",
                             .needs = AB_SWITCH(fuse_elewise_add_act_ops),
                             .in_bodies = true,
                             .skip = quantized::skip,
                             .run = quantized::run};

}  // namespace anabranch
