// A trainer takes variables, mostly parameters, from the servers that keep them.
#include "ops/distributed/no_connection.h"

namespace anabranch::distributed {
namespace {

AB_OP(recv)
    .doc("Out[i] is the variable varnames[i] of the server epmap[i].")
    .in_list("X", "read by nothing: what comes before it writes it")
    .takes("X", Holds::kAnything)
    .out_list("Out", "tensors")
    .attr<std::vector<std::string>>("epmap", {}, "the server of each variable")
    .attr<int32_t>("trainer_id", 0, "of the receiving trainer")
    .attr<bool>("with_barrier", true, "waits until the servers have updated the variables")
    .attr<std::vector<std::string>>("varnames", {}, "the name of each variable on its server")
    .attr<std::vector<std::string>>("recv_varnames", {}, "the names of the pieces of Out on the servers")
    .attr<int32_t>("do_not_run", 0, "1: the communicator receives, this op does nothing")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad("moves values between processes")
    .cpu_any(no_connection);

}  // namespace
}  // namespace anabranch::distributed
