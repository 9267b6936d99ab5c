// Rows of tables on servers, one server per list of ids.
#include "ops/distributed/not_here.h"

namespace anabranch::distributed::prefetch_op {
namespace {

AB_OP(prefetch)
    .doc("Out[i] = the rows X[i] of the table on the server epmap[i].")
    .in_list("X", "[n, 1] int64, ids")
    .takes("X", Holds::kTensorOrRows)
    .out_list("Out", "[n, width]")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<std::vector<std::string>>("epmap", {"127.0.0.1:6164"}, "server of each list of ids")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad("moves values between processes")
    .cpu_any(not_here("distributed_lookup_table fetches rows of a table on servers"));

}  // namespace
}  // namespace anabranch::distributed::prefetch_op
