#include "exec/node_shape.h"

#include <memory>
#include <optional>

namespace anabranch {

uint64_t stream_of(const ir::Op& op) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a: the same on every machine
  for (const auto& name : op.output_args()) {
    for (unsigned char c : name) h = (h ^ c) * 0x100000001b3u;
  }
  return h;
}

namespace {

uint64_t seed_of(const ir::Op& op, uint64_t fallback) {
  if (!op.has_attr("seed")) return fallback;
  const auto* own = std::get_if<int32_t>(&op.attrs.at("seed"));
  return own && *own != 0 ? static_cast<uint64_t>(*own) : fallback;
}

}  // namespace

ShapeFn make_shape_fn(const NodeFactory& factory) {
  struct State {
    NodeFactory factory;
    RuntimeShapes shapes;
    std::optional<DType> chosen;
  };
  auto state = std::make_shared<State>(State{factory, RuntimeShapes(*factory.def, factory.op), {}});
  return [state](KernelContext& c, Kernel& kernel) {
    const NodeFactory& f = state->factory;
    state->shapes.refresh(c.ins, c.outs);
    const DType dtype = f.def->kernel_dtype(*f.op, state->shapes.context().ins);
    if (state->chosen == dtype) return;
    const KernelArgs args(*f.def, *f.op, dtype, seed_of(*f.op, f.seed), stream_of(*f.op), &f.blocks);
    kernel = f.def->kernel(dtype)(args);
    state->chosen = dtype;
  };
}

}  // namespace anabranch
