// Makes servers save the state that only they have.
#include "ops/distributed/not_here.h"

namespace anabranch::distributed::checkpoint_notify_op {
namespace {

AB_OP(checkpoint_notify)
    .doc("Requests each server to save its shard of a table to a folder.")
    .attr<std::vector<std::string>>("epmap", {"127.0.0.1:6164"}, "addresses of the servers")
    .required_attr("dir", AttrType::kString, "the folder")
    .required_attr("lookup_table", AttrType::kString, "name of the table")
    .required_attr("trainer_id", AttrType::kInt, "id of this worker")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad("reads or writes files")
    .cpu_any(not_here("fleet.save_persistables and fluid.io.save_persistables save the state of servers"));

}  // namespace
}  // namespace anabranch::distributed::checkpoint_notify_op
