// Servers save what they alone have.
#include "ops/distributed/not_here.h"

namespace anabranch::distributed::checkpoint_notify_op {
namespace {

AB_OP(checkpoint_notify)
    .doc("Asks each server to save its part of a table into a folder.")
    .attr<std::vector<std::string>>("epmap", {"127.0.0.1:6164"}, "addresses of the servers")
    .required_attr("dir", AttrType::kString, "the folder")
    .required_attr("lookup_table", AttrType::kString, "name of the table")
    .required_attr("trainer_id", AttrType::kInt, "id of this worker")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad("reads or writes files")
    .cpu_any(not_here("fleet.save_persistables and fluid.io.save_persistables save what lies on servers"));

}  // namespace
}  // namespace anabranch::distributed::checkpoint_notify_op
