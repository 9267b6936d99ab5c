// All trainers have sent what they have.
#include "ops/distributed/no_connection.h"

namespace anabranch::distributed {
namespace {

AB_OP(send_barrier)
    .doc("Tells each server that this trainer has sent all of its step.")
    .in_list("X", "read by nothing: what was sent before")
    .takes("X", Holds::kAnything)
    .out_list("Out", "written by nothing: what comes after it reads it")
    .attr<int32_t>("trainer_id", 0, "of the trainer")
    .attr<std::vector<std::string>>("endpoints", {"127.0.0.1:6164"}, "addresses of the servers")
    .attr<bool>("half_async", false, "threads of this trainer wait for each other, trainers do not")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad("orders messages")
    .cpu_any(no_connection);

}  // namespace
}  // namespace anabranch::distributed
