#include "exec/node_shape.h"

#include <memory>
#include <optional>

namespace anabranch {

RandomKey random_key(const NodeFactory& node) {
  const ir::Op& op = *node.op;
  RandomKey key{node.seed};
  const int32_t* own = nullptr;
  if (auto it = op.attrs.find("seed"); it != op.attrs.end()) own = std::get_if<int32_t>(&it->second);
  const bool seeded = own && *own != 0;
  if (seeded) key.seed = static_cast<uint64_t>(int64_t{*own});
  key.repeats = seeded || node.initializes;
  const int32_t* number = nullptr;
  if (auto it = op.attrs.find(ir::kDrawNumber); it != op.attrs.end()) number = std::get_if<int32_t>(&it->second);
  // Ops without a draw number use their position, in a range above all draw numbers. Ops with equal explicit seeds
  // share a stream, so they draw equal numbers.
  const auto unnumbered = seeded ? 0 : (uint64_t{1} << 31) + static_cast<uint32_t>(node.place);
  key.stream = number ? static_cast<uint32_t>(*number) : unnumbered;
  return key;
}

ShapeFn make_shape_fn(const NodeFactory& factory) {
  struct State {
    NodeFactory factory;
    RuntimeShapes shapes;
    std::optional<DType> chosen;
  };
  auto state = std::make_shared<State>(State{factory, RuntimeShapes(*factory.def, factory.op, factory.places), {}});
  return [state](KernelContext& c, Kernel& kernel) {
    const NodeFactory& f = state->factory;
    state->shapes.refresh(c.ins, c.outs);
    const DType dtype = f.def->kernel_dtype(*f.op, state->shapes.context().ins);
    if (state->chosen == dtype) return false;
    const KernelArgs args(*f.def, *f.op, dtype, random_key(f), &f.blocks);
    kernel = (f.on_device ? f.def->device_kernel(dtype) : f.def->kernel(dtype))(args);
    state->chosen = dtype;
    return true;
  };
}

}  // namespace anabranch
