// Saves a variable that is sharded over servers to one file.
#include "ops/distributed/not_here.h"

namespace anabranch::distributed::recv_save_op {
namespace {

AB_OP(recv_save)
    .doc("Receives the slices of a variable from the servers, concatenates them and saves them to one file.")
    .attr<int32_t>("dtype", 5, "element type of the variable")
    .attr<bool>("overwrite", true, "replaces an existing file; if false, an existing file is an error")
    .required_attr("file_path", AttrType::kString, "the file")
    .required_attr("shape", AttrType::kLongs, "shape of the whole variable")
    .required_attr("slice_varnames", AttrType::kStrings, "local names of the slices")
    .required_attr("remote_varnames", AttrType::kStrings, "names of the slices on the servers")
    .required_attr("slice_shapes", AttrType::kStrings, "shape of each slice, such as 2500,8")
    .required_attr("endpoints", AttrType::kStrings, "server of each slice")
    .required_attr("trainer_id", AttrType::kInt, "id of this worker")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad("reads or writes files")
    .cpu_any(not_here("fleet.save_persistables and fluid.io.save_persistables save the state of servers"));

}  // namespace
}  // namespace anabranch::distributed::recv_save_op
