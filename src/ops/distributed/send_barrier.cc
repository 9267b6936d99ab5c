// Marks that a worker has sent all gradients of its step.
#include "ops/distributed/shards.h"
#include "ps/exchanger.h"

namespace anabranch::distributed::send_barrier_op {
namespace {

Kernel barrier_kernel(const KernelArgs& op) {
  const int trainer = op.attr<int32_t>("trainer_id");
  return [=](KernelContext& c) { ps::client_of(trainer)->exchanger().end_step(end_of(c)); };
}

AB_OP(send_barrier)
    .doc("Notifies each server that this worker has sent all gradients of its step.")
    .in_list("X", "not read; orders this op after the sends")
    .takes("X", Holds::kAnything)
    .out_list("Out", "not written; orders later ops after this one")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<std::vector<std::string>>("endpoints", {"127.0.0.1:6164"}, "addresses of the servers")
    .attr<bool>("half_async", false, "the threads of this worker wait for each other, but workers do not")
    .effects(kTalks | kAsynchronous)
    .traits(kEndsStep)
    .infer(keep_declared)
    .no_grad("it only orders messages")
    .cpu_any(barrier_kernel);

}  // namespace
}  // namespace anabranch::distributed::send_barrier_op
