// A variable that is cut over servers becomes one file.
#include "ops/distributed/not_here.h"

namespace anabranch::distributed::recv_save_op {
namespace {

AB_OP(recv_save)
    .doc("Takes the pieces of a variable from the servers, joins them and saves them as one file.")
    .attr<int32_t>("dtype", 5, "element type of the variable")
    .attr<bool>("overwrite", true, "replaces an existing file; if false, an existing file is an error")
    .required_attr("file_path", AttrType::kString, "the file")
    .required_attr("shape", AttrType::kLongs, "of the whole variable")
    .required_attr("slice_varnames", AttrType::kStrings, "names of the pieces here")
    .required_attr("remote_varnames", AttrType::kStrings, "names of the pieces on the servers")
    .required_attr("slice_shapes", AttrType::kStrings, "the shape of each piece, as 2500,8")
    .required_attr("endpoints", AttrType::kStrings, "server of each shard")
    .required_attr("trainer_id", AttrType::kInt, "id of this worker")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad("reads or writes files")
    .cpu_any(not_here("fleet.save_persistables and fluid.io.save_persistables save what lies on servers"));

}  // namespace
}  // namespace anabranch::distributed::recv_save_op
