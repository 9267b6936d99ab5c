// A trainer gives variables, mostly gradients, to the servers that keep their parameters.
#include "ops/distributed/no_connection.h"

namespace anabranch::distributed {
namespace {

const char* const kLocal = "127.0.0.1:6164";

AB_OP(send)
    .doc("Sends each X to a server. With sections, X is one variable whose rows are cut into a piece for each server.")
    .in_list("X", "tensors or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out_list("Out", "written by nothing: what comes after it reads it")
    .attr<int32_t>("trainer_id", 0, "of the sending trainer")
    .attr<std::vector<std::string>>("epmap", {kLocal}, "the server of each piece")
    .attr<std::vector<int64_t>>("sections", {}, "rows of each piece; of a tensor that is not cut, none")
    .attr<std::vector<std::string>>("send_varnames", {}, "the name of each piece on its server")
    .attr<int32_t>("num", 0, "pieces, where they are alike")
    .attr<bool>("merge_add", false, "gradients that wait are added up, not averaged")
    .attr<bool>("use_send_handler", true, "the answer of the server is waited for")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad("moves values between processes")
    .cpu_any(no_connection);

}  // namespace
}  // namespace anabranch::distributed
