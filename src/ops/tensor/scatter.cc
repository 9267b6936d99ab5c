// Writes rows by index: scatter, scatter_nd_add. An index out of range is an error.
#include "ops/tensor/row_index_on_device.h"

namespace anabranch::tensor::scatter_op {
namespace {

// Updates holds one row per element of Ids.
void check_rows(const InferContext& c, const char* slot) {
  check_shape(c, "Updates", with_rows(c.in(slot).shape, index_count(c, "Ids")));
}

void check_updates(const InferContext& c, const char* slot) {
  check_shape(c, "Updates", gather_nd_shape(c, slot));
  check_same_dtype(c, "Updates", slot);
}

AB_OP(scatter)
    .doc(
        "Replaces the rows of X at the positions Ids with the rows of Updates. A row that Ids repeats is set to its "
        "last update, or to the sum of its updates if overwrite is false.")
    .in("X", "[n, ...] numbers")
    .in("Ids", "[m] or [m, 1] int32 or int64: rows of X to replace")
    .in("Updates", "[m, ...], dtype of X")
    .out("Out", "like X")
    .may_share("X", "Out")
    .attr<bool>("overwrite", true, "sets a row that Ids repeats to its last update instead of the sum")
    .infer([](InferContext& c) {
      check_rows(c, "X");
      c.same_shape("Out", "X");
    })
    .grad_reads({"Ids", "Updates"})
    .grad_to({"X", "Updates"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [overwrite = op.attr<bool>("overwrite"), x = op.in("X"), ids = op.in("Ids"), updates = op.in("Updates"),
              out = op.out("Out")](KernelContext& c) {
        const Index at(c[ids]);
        const int64_t rows = c[out].rows(), n = c[updates].rows(), width = c[out].row_elems();
        for (int64_t i = 0; i < n; ++i) at.at(i, rows);  // checks all indices before changing anything
        copy_bytes(c, c[x], &c[out]);
        T* to = c[out].mutable_data<T>();
        const T* from = c[updates].data<T>();
        for (int64_t i = 0; i < n; ++i) {
          T* row = to + at.at(i, rows) * width;
          if (overwrite)
            std::copy_n(from + i * width, width, row);
          else
            std::fill_n(row, width, T(0));
        }
        if (!overwrite) put_back<T>(c[updates], n, width, &c[out], [&](int64_t i) { return at.at(i, rows); });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      const auto mode = op.attr<bool>("overwrite") ? device::kScatterReplace : device::kScatterSum;
      return [mode, rows = RowsInto<T>(), checked = Positions(), x = op.in("X"), ids = op.in("Ids"),
              updates = op.in("Updates"), out = op.out("Out")](const DeviceContext& c) mutable {
        checked.of(c, c[ids], NdIndex(c[out].shape(), Shape{c[ids].numel(), 1}));
        device::copy_whole(c, c[x], &c[out]);
        rows.put(c, c[updates], c[ids], c[out].row_elems(), mode, c[out]);
      };
    })
    .with(wrong_index("Ids"));

AB_GRAD(scatter)
    .doc("Updates@GRAD = the rows of Out@GRAD at Ids; X@GRAD = Out@GRAD.")
    .infer([](InferContext& c) {
      check_rows(c, "Out@GRAD");
      check_same_dtype(c, "Updates", "Out@GRAD");
      grad_as(c, "X@GRAD", "Out@GRAD");
      grad_as(c, "Updates@GRAD", "Updates");
    })
    .dtype_of_input("Out@GRAD")
    .cpu<float, double>([](auto, const KernelArgs& op) -> Kernel {
      return [ids = op.in("Ids"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dupdates = op.out("Updates@GRAD")](KernelContext& c) {
        const Index at(c[ids]);
        const int64_t rows = c[dout].rows();
        if (c.needs(dx)) copy_bytes(c, c[dout], &c[dx]);
        if (c.needs(dupdates)) {
          pick(c, c[dout], c[dupdates].rows(), c[dout].row_elems(), &c[dupdates],
               [&](int64_t i) { return at.at(i, rows); });
        }
      };
    })
    .device<float, double, float16, bfloat16>([](auto, const KernelArgs& op) -> Kernel {
      return [rows = RowsAt(op.dtype()), ids = op.in("Ids"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dupdates = op.out("Updates@GRAD")](const DeviceContext& c) {
        if (c.needs(dx)) device::copy_whole(c, c[dout], &c[dx]);
        if (c.needs(dupdates)) {
          rows.pick(c, c[dout], c[ids], c[dout].row_elems(), c[dupdates]);
        }
      };
    })
    .with(wrong_index("Ids"));

AB_OP(scatter_nd_add)
    .doc("Out = X with Updates added at the positions of Index, which may repeat.")
    .in("X", "[...] float or integers")
    .in("Index", "[..., depth] int32 or int64: positions in the first axes of X")
    .in("Updates", "like the result of gather_nd(X, Index)")
    .out("Out", "like X")
    .may_share("X", "Out")
    .infer([](InferContext& c) {
      check_updates(c, "X");
      c.same_as("Out", "X");
    })
    .grad_reads({"Index", "Updates"})
    .grad_to({"X", "Updates"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), index = op.in("Index"), updates = op.in("Updates"), out = op.out("Out")](KernelContext& c) {
            const Index at(c[index]);
            const NdIndex nd(c[x].shape(), c[index].shape());
            for (int64_t i = 0; i < nd.n; ++i) nd.position(at, i);  // checks all indices before changing anything
            copy_bytes(c, c[x], &c[out]);
            put_back<T>(c[updates], nd.n, nd.width, &c[out], [&](int64_t i) { return nd.position(at, i); });
          };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [rows = RowsInto<T>(), positions = Positions(), x = op.in("X"), index = op.in("Index"),
              updates = op.in("Updates"), out = op.out("Out")](const DeviceContext& c) mutable {
        const NdIndex nd(c[x].shape(), c[index].shape());
        device::copy_whole(c, c[x], &c[out]);
        rows.put(c, c[updates], positions.of(c, c[index], nd), nd.width, device::kScatterAdd, c[out]);
      };
    })
    .with(wrong_index("Index"));

AB_GRAD(scatter_nd_add)
    .doc("X@GRAD = Out@GRAD; Updates@GRAD = Out@GRAD at the positions of Index.")
    .infer([](InferContext& c) {
      check_updates(c, "Out@GRAD");
      grad_as(c, "X@GRAD", "Out@GRAD");
      grad_as(c, "Updates@GRAD", "Updates");
    })
    .dtype_of_input("Out@GRAD")
    .cpu<float, double>([](auto, const KernelArgs& op) -> Kernel {
      return [index = op.in("Index"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dupdates = op.out("Updates@GRAD")](KernelContext& c) {
        const Index at(c[index]);
        const NdIndex nd(c[dout].shape(), c[index].shape());
        if (c.needs(dx)) copy_bytes(c, c[dout], &c[dx]);
        if (!c.needs(dupdates)) return;
        pick(c, c[dout], nd.n, nd.width, &c[dupdates], [&](int64_t i) { return nd.position(at, i); });
      };
    })
    .device<float, double, float16, bfloat16>([](auto, const KernelArgs& op) -> Kernel {
      return [rows = RowsAt(op.dtype()), positions = Positions(), index = op.in("Index"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD"), dupdates = op.out("Updates@GRAD")](const DeviceContext& c) mutable {
        const NdIndex nd(c[dout].shape(), c[index].shape());
        if (c.needs(dx)) device::copy_whole(c, c[dout], &c[dx]);
        if (!c.needs(dupdates)) return;
        rows.pick(c, c[dout], positions.of(c, c[index], nd), nd.width, c[dupdates]);
      };
    })
    .with(wrong_index("Index"));

}  // namespace
}  // namespace anabranch::tensor::scatter_op
