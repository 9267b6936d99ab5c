// All trainers have taken what the servers have.
#include "ops/distributed/declare.h"

namespace anabranch::distributed::fetch_barrier_op {
namespace {

AB_OP(fetch_barrier)
    .doc("Tells each server that this trainer has received all parameters of its step.")
    .in_optional_list("X", "read by nothing: what was received before")
    .takes("X", Holds::kAnything)
    .out_list("Out", "not written; orders later ops after this one")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<std::vector<std::string>>("endpoints", {"127.0.0.1:6164"}, "addresses of the servers")
    .effects(kTalks)
    .traits(kSameForms | kReceives)
    .infer(keep_declared)
    .no_grad("orders messages")
    .cpu_any([](const KernelArgs&) -> Kernel {
      return [](KernelContext&) {};  // an answer is received by whoever asked: nothing is left to tell
    });

}  // namespace
}  // namespace anabranch::distributed::fetch_barrier_op
