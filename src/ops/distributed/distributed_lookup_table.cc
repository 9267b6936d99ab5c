// Rows of tables that exist only on servers.
#include <algorithm>

#include "ops/declare/attr_checks.h"
#include "ops/distributed/remote_rows.h"
#include "ops/distributed/row_shards.h"

namespace anabranch::distributed::distributed_lookup_table_op {
namespace {

void declare_found(InferContext& c, int64_t width, bool last_is_one, DType dtype) {
  for (int i = 0; i < c.n_out("Outputs"); ++i) {
    const Meta& ids = c.in("Ids", i);
    c.set_out("Outputs", found_shape(ids, width, last_is_one), dtype, i);
    c.out("Outputs", i).lod_level = ids.lod_level;
    c.out("Outputs", i).lod = ids.lod;
  }
}

void infer(InferContext& c) {
  check_remote_table(c);
  const Meta& w = c.in("W");
  AB_CHECK(w.shape.rank() == 2, InvalidArgument, "W must have 2 axes, got {}: has the startup program run?",
           w.shape.str());
  const RowShards cut("height_sections", c.attr<std::vector<int64_t>>("height_sections"));
  AB_CHECK(!cut.by_hash(), InvalidArgument, "height_sections must not be negative, got {}", kUnknown);
  declare_found(c, w.shape[1], c.attr<std::string>("lookup_table_version") == "lookup_table",
                dtype_from_number(c.attr<int32_t>("dtype")));
}

AB_OP(distributed_lookup_table)
    .doc("Outputs[i] = the rows Ids[i] of a table whose rows are sharded over servers.")
    .in_list("Ids", "[..., 1] int64, or [...] for lookup_table_v2")
    .in("W", "[height, width], only its shape is read")
    .takes("W", Holds::kAnything)
    .out_list("Outputs", "[..., width]; each with the LoD of its Ids")
    .attr<std::vector<std::string>>("table_names", {""}, "name of the shard on each server")
    .attr<std::vector<int64_t>>("height_sections", {}, "number of rows of each shard")
    .attr<std::vector<std::string>>("endpoints", {"127.0.0.1:6164"}, "server of each shard")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<std::string>("lookup_table_version", "lookup_table", "the op that defines the shapes: lookup_table[_v2]",
                       one_of("lookup_table_version", {"lookup_table", "lookup_table_v2"}))
    .attr<int64_t>("padding_idx", -1, "id that reads as zero; -1: none")
    .attr<int32_t>("dtype", 5, "element type of the table")
    .effects(kMaybeUnset | kAsynchronous)
    .traits(kReceives | kForAllReplicas)
    .infer(infer)
    .no_grad("it has the gradient of the lookup that it replaces")
    .cpu_any([](const KernelArgs& op) {
      const auto padding = op.attr<int64_t>("padding_idx");
      return remote_rows_kernel(op, {.has_padding = padding >= 0, .padding = padding});
    });

AB_OP(distributed_lookup_growable)
    .doc(
        "Outputs[i] = the rows of the keys Ids[i], of a growable table that is sharded over servers by the hash of a "
        "key. In training a key without a row gets one there; otherwise it reads as zeros.")
    .in_list("Ids", "[...] int64, any numbers, or [..., 1] with last_is_one")
    .in("W", "the table's variable in the program; ignored")
    .takes("W", Holds::kAnything)
    .out_list("Outputs", "[..., width]; each with the LoD of its Ids")
    .required_attr("table_names", AttrType::kStrings, "name of the shard on each server")
    .required_attr("height_sections", AttrType::kLongs, "-1 for each shard")
    .required_attr("endpoints", AttrType::kStrings, "server of each shard")
    .required_attr("width", AttrType::kLong, "number of float32 elements of a row")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<bool>("last_is_one", false, "the last extent of Ids is 1 and is replaced by the width")
    .attr<bool>("has_padding", false, "one key is a padding key")
    .attr<int64_t>("padding_idx", -1, "key that reads as zeros and gets no row, if has_padding")
    .attr<bool>("is_test", false, "lookups count no key and create no row")
    .effects(kMaybeUnset | kAsynchronous)
    .traits(kReceives | kForAllReplicas)
    .infer([](InferContext& c) {
      check_remote_table(c);
      const auto& heights = c.attr<std::vector<int64_t>>("height_sections");
      AB_CHECK(std::all_of(heights.begin(), heights.end(), [](int64_t h) { return h == kUnknown; }), InvalidArgument,
               "height_sections must be -1 for growable tables");
      AB_CHECK(c.attr<int64_t>("width") > 0, InvalidArgument, "width must be at least 1, got {}",
               c.attr<int64_t>("width"));
      declare_found(c, c.attr<int64_t>("width"), c.attr<bool>("last_is_one"), DType::kFloat32);
    })
    .no_grad("it has the gradient of the lookup that it replaces")
    .cpu_any([](const KernelArgs& op) {
      return remote_rows_kernel(op, {.has_padding = op.attr<bool>("has_padding"),
                                     .padding = op.attr<int64_t>("padding_idx"),
                                     .trains = !op.attr<bool>("is_test")});
    });

}  // namespace
}  // namespace anabranch::distributed::distributed_lookup_table_op
