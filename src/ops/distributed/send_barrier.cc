// All trainers have sent what they have.
#include "ops/distributed/pieces.h"
#include "ps/communicator.h"

namespace anabranch::distributed::send_barrier_op {
namespace {

// The step's gradients go to all servers, and the node ends when all of them have answered.
Kernel barrier_kernel(const KernelArgs& op) {
  const int trainer = op.attr<int32_t>("trainer_id");
  const bool half_async = op.attr<bool>("half_async");
  return [=](KernelContext& c) {
    const auto client = ps::client_of(trainer);
    ps::Communicator* communicator = client->communicator();
    if (half_async && !communicator && !client->in_step()) return;  // each send has been a message of its own
    auto completion = std::make_shared<Completion>(LaterContext::of(c).take());
    const auto end = [completion](const std::exception_ptr& e) { e ? completion->fail(e) : completion->done(); };
    if (communicator) {
      communicator->meet(end);
    } else {
      client->exchange(end);
    }
  };
}

AB_OP(send_barrier)
    .doc("Tells each server that this trainer has sent all of its step.")
    .in_list("X", "read by nothing: what was sent before")
    .takes("X", Holds::kAnything)
    .out_list("Out", "not written; orders later ops after this one")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<std::vector<std::string>>("endpoints", {"127.0.0.1:6164"}, "addresses of the servers")
    .attr<bool>("half_async", false, "threads of this trainer wait for each other, trainers do not")
    .effects(kTalks | kCompletesLater)
    .traits(kEndsStep)
    .infer(keep_declared)
    .no_grad("orders messages")
    .cpu_any(barrier_kernel);

}  // namespace
}  // namespace anabranch::distributed::send_barrier_op
