// Lookup in a table that holds only some of its rows.
#include <algorithm>
#include <memory>

#include "ops/declare/declare.h"
#include "ops/kernels/ids.h"
#include "ops/sparse/look_up.h"
#include "ops/sparse/row_places.h"

namespace anabranch::sparse::lookup_sparse_table_op {
namespace {

AB_OP(lookup_sparse_table)
    .doc(
        "Out = the rows Ids of W. A row that W does not hold is 0 with is_test; otherwise it is an error, because "
        "servers have growable tables.")
    .in("W", "SELECTED_ROWS: the existing rows of the table")
    .in("Ids", "[n, 1] int64")
    .takes("W", Holds::kTensorOrRows)
    .out("Out", "[n, columns] like W")
    .attr<bool>("is_test", false, "reads missing rows as 0")
    .ignores("auto_grown_table", true)
    .ignores("padding_idx", int64_t{-1})
    .infer([](InferContext& c) {
      const Meta& w = c.in("W");
      AB_CHECK(w.kind == VarKind::kSelectedRows, InvalidArgument, "W must be SELECTED_ROWS, got a {}",
               var_kind_name(w.kind));
      AB_CHECK(w.shape.rank() == 2, InvalidArgument, "W must have 2 axes, got {}", w.shape.str());
      check_dtype(c, "Ids", DType::kInt64);
      c.set_out("Out", looked_up_shape(c, true, w.shape[1]), w.dtype);
      c.share_lod("Out", "Ids");
    })
    .no_grad("the server updates its table")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [test = op.attr<bool>("is_test"), w = op.in("W"), ids = op.in("Ids"), out = op.out("Out"),
              places = std::make_shared<RowPlaces>(Repeated::kLast)](KernelContext& c) {
        const SelectedRows& table = c.value(w).rows();
        check_rows(table);
        places->see(table.rows);
        const int64_t width = c[out].row_elems();
        AB_CHECK(table.value.row_elems() == width, ShapeMismatch, "W must have {} columns, got {}", width,
                 table.value.shape().str());
        const int64_t* id = c[ids].data<int64_t>();
        T* to = c[out].mutable_data<T>();
        for (int64_t i = 0; i < c[ids].numel(); ++i, to += width) {
          const int64_t at = places->of(id[i]);
          AB_CHECK(at >= 0 || test, InvalidArgument, "Ids must name existing rows of W, got {}", id[i]);
          if (at < 0) {
            std::fill(to, to + width, T{0});
          } else {
            std::copy_n(table.value.data<T>() + at * width, width, to);
          }
        }
      };
    });

}  // namespace
}  // namespace anabranch::sparse::lookup_sparse_table_op
