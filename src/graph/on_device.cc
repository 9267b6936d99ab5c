#include "graph/on_device.h"

#include "graph/edit.h"
#include "opdef/device_rows.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

// Devices support values of its kind if the op's kernels accept them.
bool fits(const GraphVar& var, const GraphNode& node) {
  return var.desc.kind == VarKind::kLoDTensor ||
         (var.desc.kind == VarKind::kSelectedRows && takes_rows_on_devices(node.op->type));
}

// The plug-in has the kernels that the op launches.
bool has_kernels(const OpDef& def, const GraphNode& node, DType dtype) {
  try {
    def.device_kernel(dtype)(KernelArgs(def, *node.op, dtype, {}));
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kUnsupported) throw;
    return false;
  }
}

}  // namespace

bool is_guarded(const ir::Op& op) {
  return op.has_attr("op_device") && op.attr<std::string>("op_device").rfind("cpu", 0) == 0;
}

std::vector<Meta> metas_of(const Graph& graph, const GraphNode& node) {
  std::vector<Meta> ins(node.ins.size());
  for (size_t i = 0; i < ins.size(); ++i) {
    if (node.ins[i] >= 0) ins[i].dtype = graph.vars[node.ins[i]].desc.dtype;
  }
  return ins;
}

bool runs_on_device(const Graph& graph, const GraphNode& node, const std::vector<Meta>& ins) {
  if (is_guarded(*node.op)) return false;
  const OpDef& def = find_op(node.op->type);
  if (!is_plain(node) || def.is_dynamic(*node.op) || def.has(kRunsBlock)) return false;
  for (const int v : graph.reads(node)) {
    if (!fits(graph.vars[v], node) || graph.vars[v].dynamic) return false;
  }
  for (const int v : graph.writes(node)) {
    if (!fits(graph.vars[v], node) || graph.vars[v].fed) return false;
  }
  const DType dtype = def.kernel_dtype(*node.op, ins);
  return def.has_device_kernel(dtype) && has_kernels(def, node, dtype);
}

}  // namespace anabranch
