// scale of a fill_constant becomes a fill_constant of the result. Learning rates and other numbers in the scope are not
// constants: a program may set them between two steps.
#include <cstdlib>
#include <optional>

#include "graph/edit.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

// The value that a float32 fill_constant writes, if its attributes determine it. The text takes precedence over the
// number.
std::optional<float> constant_of(const GraphNode& node) {
  const ir::Op& op = *node.op;
  if (op.type != "fill_constant" || !node.ins.empty()) return {};
  if (dtype_from_number(op.attr<int32_t>("dtype")) != DType::kFloat32) return {};
  const std::string text = op.has_attr("str_value") ? op.attr<std::string>("str_value") : "";
  if (text.empty()) return op.attr<float>("value");
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0') return {};
  return static_cast<float>(number);
}

// With the kernel's own operations, in float32.
float scaled(const ir::Op& op, float x) {
  const float scale = op.attr<float>("scale"), bias = op.attr<float>("bias");
  const float product = op.attr<bool>("bias_after_scale") || bias == 0 ? x * scale : x + bias;
  return op.attr<bool>("bias_after_scale") || bias == 0 ? product + bias : product * scale;
}

int fold_constants(Graph& graph, const PassContext&) {
  const Uses uses(graph);
  int folded = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    GraphNode& node = graph.nodes[i];
    if (node.op->type != "scale" || !node.op->input("ScaleTensor").empty()) continue;
    const int x = input_var(node, "X"), out = output_var(node, "Out");
    const int from = x < 0 ? -1 : uses.writer(x);
    if (out < 0 || from < 0 || from >= static_cast<int>(i)) continue;
    const auto value = constant_of(graph.nodes[from]);
    if (!value) continue;
    auto op = std::make_shared<ir::Op>(*graph.nodes[from].op);
    op->attrs["value"] = scaled(*node.op, *value);
    op->attrs["str_value"] = std::string();
    op->attrs["op_role"] = int32_t{node.role()};
    op->outputs = {{"Out", {graph.vars[out].name}}};
    op->made_at = node.op->made_at;
    node.op = op;
    node.ins.clear();
    ++folded;
  }
  return folded;
}

}  // namespace

const Pass kFoldConstants = {.name = "fold_constants",
                             .what = "computes arithmetic on constants when the program is compiled",
                             .tolerance = "bit-equal",
                             .in_bodies = true,
                             .on_devices = true,
                             .run = fold_constants};

}  // namespace anabranch
