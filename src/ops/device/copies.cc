// Copies between the CPU and a device, and between devices. The engine inserts them where a value is needed on another
// device than the one that computes it.
#include <cstring>
#include <memory>

#include "core/row_blocks.h"
#include "device/pool.h"
#include "opdef/device_context.h"
#include "opdef/device_rows.h"
#include "opdef/op_def.h"

namespace anabranch::copies_op {
namespace {

Tensor bytes_of(const SelectedRows& block) {
  Tensor bytes;
  bytes.view(const_cast<void*>(block.value.raw()), Shape{static_cast<int64_t>(block_bytes(block))},
             {DType::kUInt8, block.value.place()}, nullptr);
  return bytes;
}

// The same for sparse rows; those of the CPU are concatenated first.
void copy_rows(const DeviceContext& c, const SelectedRows& from, SelectedRows* to, SelectedRows* staged) {
  const bool up = !in_block(from);
  if (up) put_into_block(from, staged);
  const SelectedRows& block = up ? *staged : from;
  const Place place = to->value.place();
  lay_out_block(to, block.height, block.value.shape(), {block.value.dtype(), place});
  Tensor target = bytes_of(*to);
  if (target.bytes() > 0) c.copy(target, bytes_of(block));
}

// Host memory is copied immediately to pinned memory of the node, because its producer may overwrite it.
Kernel copy_kernel(const KernelArgs& op) {
  return [x = op.in("X"), out = op.out("Out"), staged = Tensor(),
          staged_rows = std::make_unique<SelectedRows>()](const DeviceContext& c) mutable {
    if (const auto* rows = c.value(x).get<SelectedRows>()) {
      return copy_rows(c, *rows, &c.value(out).as<SelectedRows>(), staged_rows.get());
    }
    const Tensor& from = c[x];
    if (from.place().kind != PlaceKind::kCpu) return c.copy(c[out], from);
    staged.resize(from.shape(), {from.dtype(), Place::pinned()});
    std::memcpy(staged.mutable_raw(), from.raw(), from.bytes());
    c.copy(c[out], staged);
  };
}

AB_OP(copy_between_places)
    .doc("Out = X, on another device. Inserted by the engine.")
    .in("X", "[...], or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "[...] like X")
    .effects(kEngineOnly)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("the engine inserts it after the gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) { c[out].copy_from(c[x]); };
    })
    .with(rows_on_devices)
    .device_any(copy_kernel);

AB_OP(rows_of_block)
    .doc("Out = X, sparse rows from a device in the CPU's format. Inserted by the engine.")
    .in("X", "sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "sparse rows, without padding")
    .effects(kEngineOnly)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("the engine inserts it after the gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        take_from_block(c.value(x).rows(), &c.value(out).as<SelectedRows>());
      };
    });

}  // namespace
}  // namespace anabranch::copies_op
