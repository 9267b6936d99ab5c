// Rows of a table that lives on servers alone.
#include "ops/declare/attr_checks.h"
#include "ops/distributed/no_connection.h"

namespace anabranch::distributed {
namespace {

// As lookup_table and lookup_table_v2 have it: an id axis of 1 becomes the row, or the row follows the ids.
Shape found_shape(const Meta& ids, int64_t width, bool last_is_one) {
  AB_CHECK(ids.dtype == DType::kInt64, InvalidArgument, "Ids must hold int64, got {}", dtype_name(ids.dtype));
  Shape shape = ids.shape;
  const int last = shape.rank() - 1;
  AB_CHECK(last >= 0 && shape.rank() <= kMaxRank - (last_is_one ? 0 : 1), InvalidArgument,
           "Ids must have an axis, and room for one more, got {}", shape.str());
  if (!last_is_one) {
    shape.push_back(width);
    return shape;
  }
  AB_CHECK(last >= 1 && (shape[last] == 1 || shape[last] == kUnknown), InvalidArgument, "Ids must be [..., 1], got {}",
           shape.str());
  shape.set(last, width);
  return shape;
}

void infer(InferContext& c) {
  AB_CHECK(c.n_in("Ids") == c.n_out("Outputs"), InvalidArgument, "Ids and Outputs must be as many, got {} and {}",
           c.n_in("Ids"), c.n_out("Outputs"));
  const size_t pieces = c.attr<std::vector<std::string>>("table_names").size();
  AB_CHECK(pieces > 0 && pieces == c.attr<std::vector<int64_t>>("height_sections").size() &&
               pieces == c.attr<std::vector<std::string>>("endpoints").size(),
           InvalidArgument, "table_names, height_sections and endpoints must be as many, and one at least");
  const Meta& w = c.in("W");
  AB_CHECK(w.shape.rank() == 2, InvalidArgument, "W must have 2 axes, got {}", w.shape.str());
  const bool last_is_one = c.attr<std::string>("lookup_table_version") == "lookup_table";
  for (int i = 0; i < c.n_out("Outputs"); ++i) {
    const Meta& ids = c.in("Ids", i);
    c.set_out("Outputs", found_shape(ids, w.shape[1], last_is_one), dtype_from_number(c.attr<int32_t>("dtype")), i);
    c.out("Outputs", i).lod_level = ids.lod_level;
    c.out("Outputs", i).lod = ids.lod;
  }
}

}  // namespace

AB_OP(distributed_lookup_table)
    .doc("Outputs[i] = the rows that Ids[i] names, of a table that is cut by rows over servers.")
    .in_list("Ids", "[..., 1] int64, or [...] for lookup_table_v2")
    .in("W", "[height, width], its shape alone is read")
    .takes("W", Holds::kAnything)
    .out_list("Outputs", "[..., width]; each carries the sequences of its Ids")
    .attr<std::vector<std::string>>("table_names", {""}, "name of the piece on each server")
    .attr<std::vector<int64_t>>("height_sections", {}, "rows of each piece")
    .attr<std::vector<std::string>>("endpoints", {"127.0.0.1:6164"}, "the server of each piece")
    .attr<int32_t>("trainer_id", 0, "of the asking trainer")
    .attr<std::string>("lookup_table_version", "lookup_table", "the op whose shapes hold: lookup_table[_v2]",
                       one_of("lookup_table_version", {"lookup_table", "lookup_table_v2"}))
    .attr<int64_t>("padding_idx", -1, "id that reads as zero; -1: none")
    .attr<int32_t>("dtype", 5, "element type of the table")
    .effects(kOrdered | kMaybeUnset)
    .infer(infer)
    .no_grad("the gradient is that of the look-up that it stands for")
    .cpu_any(no_connection);

}  // namespace anabranch::distributed
