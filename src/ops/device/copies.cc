// Copies between the CPU and a device, and between devices, which the engine puts where a value is wanted at another
// place than it was made.
#include <cstring>

#include "device/pool.h"
#include "opdef/device_context.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

// Memory of the CPU is read at once, through pinned memory of the node: whoever wrote it may write it again.
Kernel copy_kernel(const KernelArgs& op) {
  return [x = op.in("X"), out = op.out("Out"), staged = Tensor()](KernelContext& c) mutable {
    const Tensor& from = c[x];
    const DeviceContext& queued = DeviceContext::of(c);
    if (from.place().kind != PlaceKind::kCpu) return queued.copy(c[out], from);
    staged.resize(from.shape(), {from.dtype(), Place::pinned()});
    std::memcpy(staged.mutable_raw(), from.raw(), from.bytes());
    queued.copy(c[out], staged);
  };
}

AB_OP(copy_between_places)
    .doc("Out = X, at another place. Made by the engine.")
    .in("X", "[...]")
    .out("Out", "[...] as X")
    .effects(kEngineOnly)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("the engine makes it, after gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) { c[out].copy_from(c[x]); };
    })
    .device_any(copy_kernel);

}  // namespace
}  // namespace anabranch
