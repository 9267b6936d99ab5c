// mixed_precision: ops marked by contrib.mixed_precision.decorate read and write 16-bit floats if a device runs them;
// parameters, fed and fetched values, and all other ops keep float32. A value is cast once for all its readers, and
// back only if a node reads it as float32. On the CPU, which has no 16-bit arithmetic, nothing changes.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/counted.h"
#include "graph/edit.h"
#include "graph/on_device.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

constexpr const char* kMark = "mixed_precision";  // the attribute: "float16" or "bfloat16"

std::optional<DType> marked(const ir::Op& op) {
  const auto it = op.attrs.find(kMark);
  const auto* name = it == op.attrs.end() ? nullptr : std::get_if<std::string>(&it->second);
  if (!name || name->empty()) return std::nullopt;
  if (*name == dtype_name(DType::kFloat16)) return DType::kFloat16;
  AB_CHECK(*name == dtype_name(DType::kBFloat16), InvalidArgument,
           "{}: attribute {} must be float16 or bfloat16, got {}", op.type, kMark, *name);
  return DType::kBFloat16;
}

// In norms, per-channel and per-row values stay float32 while the normalized values do not.
bool keeps_float32(const ir::Op& op, const std::string& slot) {
  const bool norm = op.type.starts_with("batch_norm") || op.type.starts_with("layer_norm");
  return norm && slot != "X" && slot != "Y" && slot != "X@GRAD" && slot != "Y@GRAD";
}

// Per flattened argument: whether it is in a slot that keeps float32.
std::vector<char> kept(const ir::Op& op, const std::vector<ir::Slot>& slots) {
  std::vector<char> flags;
  for (const ir::Slot& slot : slots) flags.insert(flags.end(), slot.args.size(), keeps_float32(op, slot.name));
  return flags;
}

class Lowering {
 public:
  Lowering(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    narrow_.resize(graph_.vars.size(), -1);
    stale_.resize(graph_.vars.size(), 0);
    std::vector<GraphNode> nodes = std::move(graph_.nodes);
    for (GraphNode& node : nodes) add(std::move(node));
    graph_.nodes = std::move(out_);
    note();
    return lowered_;
  }

 private:
  // If all gradients of a value's readers are 16-bit floats, so is their sum.
  std::optional<DType> of_sum(const GraphNode& node) const {
    if (node.op->type != "sum" || !(node.role() & ir::role::kBackward) || node.ins.empty()) return std::nullopt;
    std::optional<DType> dtype;
    for (const int v : node.ins) {
      if (v < 0 || narrow_[v] < 0 || !stale_[v]) return std::nullopt;
      dtype = graph_.vars[narrow_[v]].desc.dtype;
    }
    return dtype;
  }

  // The 16-bit float type with which a device runs the node.
  std::optional<DType> lower_dtype(const GraphNode& node) const {
    const auto dtype = node.op->type == "sum" ? of_sum(node) : marked(*node.op);
    if (!dtype || context_.places[static_cast<size_t>(node.replica)].on_host()) return std::nullopt;
    auto ins = metas_of(graph_, node);
    const auto keeps = kept(*node.op, node.op->inputs);
    bool any = false;
    for (size_t i = 0; i < ins.size(); ++i) {
      if (!is_float(graph_, node.ins[i]) || keeps[i]) continue;
      ins[i].dtype = *dtype;
      any = true;
    }
    if (!any || !find_op(node.op->type).has_device_kernel(*dtype)) return std::nullopt;
    return runs_on_device(graph_, node, ins) ? dtype : std::nullopt;
  }

  // The variable that holds the values of v as this 16-bit float.
  int copy_of(int v, DType dtype) {
    GraphVar narrow_copy;
    const GraphVar& var = graph_.vars[v];
    narrow_copy.name = var.name;
    narrow_copy.replica = var.replica;
    narrow_copy.version = var.version;
    narrow_copy.desc = var.desc;
    narrow_copy.desc.persistable = false;
    narrow_copy.desc.dtype = dtype;
    narrow_copy.produced = true;
    narrow_copy.dynamic = var.dynamic;
    graph_.vars.push_back(std::move(narrow_copy));
    narrow_.push_back(-1);
    stale_.push_back(0);
    return narrow_[v] = static_cast<int>(graph_.vars.size()) - 1;
  }

  void add_cast(int from, int to, const GraphNode& next_to) {
    out_.push_back(NodeBuilder(graph_, "cast", next_to.op, next_to.index, graph_.vars[from].replica)
                       .in("X", from)
                       .out("Out", to)
                       .attr("in_dtype", static_cast<int32_t>(graph_.vars[from].desc.dtype))
                       .attr("out_dtype", static_cast<int32_t>(graph_.vars[to].desc.dtype))
                       .done());
    ++casts_;
  }

  int narrow(int v, DType dtype, const GraphNode& reader) {
    if (narrow_[v] >= 0 && graph_.vars[narrow_[v]].desc.dtype == dtype) return narrow_[v];
    widen(v, reader);
    const int narrow_copy = copy_of(v, dtype);
    add_cast(v, narrow_copy, reader);
    return narrow_copy;
  }

  // v itself holds its value.
  void widen(int v, const GraphNode& reader) {
    if (v < 0 || !stale_[v]) return;
    stale_[v] = 0;
    add_cast(narrow_[v], v, reader);
  }

  void add(GraphNode node) {
    const auto dtype = lower_dtype(node);
    dtype ? lower(std::move(node), *dtype) : keep(std::move(node));
  }

  void keep(GraphNode node) {
    for (const int v : graph_.reads(node)) widen(v, node);
    for (const int v : graph_.writes(node)) {
      narrow_[v] = -1;
      stale_[v] = 0;
    }
    out_.push_back(std::move(node));
  }

  void lower(GraphNode node, DType dtype) {
    const GraphNode original = node;
    const auto keeps_in = kept(*node.op, node.op->inputs), keeps_out = kept(*node.op, node.op->outputs);
    for (size_t i = 0; i < node.ins.size(); ++i) {
      const int v = original.ins[i];
      if (!is_float(graph_, v) || keeps_in[i]) {
        widen(v, original);
      } else {
        node.ins[i] = narrow(v, dtype, original);
        std::replace(node.only_shapes.begin(), node.only_shapes.end(), v, node.ins[i]);
      }
    }
    std::vector<int> wide;
    for (size_t k = 0; k < node.outs.size(); ++k) {
      const int v = original.outs[k];
      if (v < 0) continue;
      narrow_[v] = -1;
      stale_[v] = 0;
      if (!is_float(graph_, v) || keeps_out[k]) continue;
      node.outs[k] = copy_of(v, dtype);
      stale_[v] = 1;
      if (graph_.vars[v].fetched || graph_.vars[v].desc.persistable) wide.push_back(v);
    }
    out_.push_back(std::move(node));
    for (const int v : wide) widen(v, original);
    types_[dtype_name(dtype)].insert(original.op->type);
    ++lowered_;
  }

  void note() const {
    if (!context_.notes) return;
    for (const auto& [dtype, types] : types_) {
      context_.notes->push_back(fmt::format("in {}: {}", dtype, fmt::join(types, ", ")));
    }
    if (lowered_) context_.notes->push_back(fmt::format("{} for {}", counted(casts_, "cast"), counted(lowered_, "op")));
  }

  Graph& graph_;
  const PassContext& context_;
  std::vector<GraphNode> out_;
  std::vector<int> narrow_;  // by variable: its 16-bit version; -1: none
  std::vector<char> stale_;  // by variable: only the 16-bit version is valid
  std::map<std::string, std::set<std::string>> types_;
  int casts_ = 0, lowered_ = 0;
};

int mixed_precision(Graph& graph, const PassContext& context) {
  const auto& nodes = graph.nodes;
  if (std::none_of(nodes.begin(), nodes.end(), [](const GraphNode& n) { return marked(*n.op).has_value(); })) return 0;
  return Lowering(graph, context).run();
}

}  // namespace

const Pass kMixedPrecision = {.name = "mixed_precision",
                              .what = "computes the ops that mixed_precision.decorate marked in 16-bit floats",
                              .tolerance = "relative 2^-11 an operand in float16, 2^-8 in bfloat16",
                              .on_devices = true,
                              .skip = skip_on_cpu,
                              .run = mixed_precision};

}  // namespace anabranch
