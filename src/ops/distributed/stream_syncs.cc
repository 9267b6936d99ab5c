// Waits for streams of a device. The executor orders computation, so these ops pass their value through.
#include "opdef/device_context.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/copy.h"

namespace anabranch::distributed::stream_syncs_op {
namespace {

Kernel pass(const KernelArgs& op) {
  return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    if (&c.value(x) == &c.value(out)) return;
    if (c.value(x).is<Tensor>()) return copy_bytes(c, c[x], &c[out]);
    c.value(out).copy_from(c.value(x));
  };
}

Kernel pass_there(const KernelArgs& op) {
  return [x = op.in("X"), out = op.out("Out")](const DeviceContext& c) {
    if (c[x].raw() != c[out].raw()) c.copy(c[out], c[x]);
  };
}

AB_OP(c_sync_calc_stream)
    .doc("Out = X, after it has been computed.")
    .in("X", "[...], or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "like X")
    .may_share("X", "Out")
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("applies to gradients")
    .cpu_any(pass)
    .device_any(pass_there);

AB_OP(c_sync_comm_stream)
    .doc("Out = X, after the processes of the ring have computed it.")
    .in("X", "[...], or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "like X")
    .may_share("X", "Out")
    .attr<int32_t>("ring_id", 0, "id of the ring", at_least<int32_t>("ring_id", 0))
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("applies to gradients")
    .cpu_any(pass)
    .device_any(pass_there);

}  // namespace
}  // namespace anabranch::distributed::stream_syncs_op
