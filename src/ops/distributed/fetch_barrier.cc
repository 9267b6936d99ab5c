// Marks that a worker has received all of its parameters.
#include "ops/distributed/declare.h"

namespace anabranch::distributed::fetch_barrier_op {
namespace {

AB_OP(fetch_barrier)
    .doc("Notifies each server that this worker has received all parameters of its step.")
    .in_optional_list("X", "not read; orders this op after the receives")
    .takes("X", Holds::kAnything)
    .out_list("Out", "not written; orders later ops after this one")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<std::vector<std::string>>("endpoints", {"127.0.0.1:6164"}, "addresses of the servers")
    .effects(kTalks)
    .traits(kSameForms | kReceives)
    .infer(keep_declared)
    .no_grad("it only orders messages")
    .cpu_any([](const KernelArgs&) -> Kernel {
      return [](KernelContext&) {};  // every request waited for its answer, so there is nothing to send
    });

}  // namespace
}  // namespace anabranch::distributed::fetch_barrier_op
