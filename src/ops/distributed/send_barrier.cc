// Marks that a worker has sent all gradients of its step.
#include "ops/distributed/shards.h"
#include "ps/communicator.h"

namespace anabranch::distributed::send_barrier_op {
namespace {

// Sends the step's gradients to all servers; the node completes when all of them have answered.
Kernel barrier_kernel(const KernelArgs& op) {
  const int trainer = op.attr<int32_t>("trainer_id");
  const bool half_async = op.attr<bool>("half_async");
  return [=](KernelContext& c) {
    const auto client = ps::client_of(trainer);
    ps::Communicator* communicator = client->communicator();
    if (half_async && !communicator && !client->in_step()) return;  // each send was a message
    auto completion = std::make_shared<Completion>(AsyncContext::of(c).take());
    const auto end = [completion](const std::exception_ptr& e) { e ? completion->fail(e) : completion->done(); };
    if (communicator) {
      communicator->meet(end);
    } else {
      client->exchange(end);
    }
  };
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
