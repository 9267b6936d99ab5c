// Gathers rows by index: gather, gather_nd. An index out of range is an error.
#include "ops/declare/second_order.h"
#include "ops/tensor/row_index_on_device.h"

namespace anabranch::tensor::gather_op {
namespace {

AB_OP(gather)
    .doc("Selects the rows of X at the positions Index.")
    .in("X", "[n, ...] any")
    .in("Index", "[m] or [m, 1] int32 or int64: rows of X, which may repeat")
    .out("Out", "[m, ...], dtype of X")
    .attr<bool>("overwrite", true,
                "gradient of a row that Index repeats. True: the gradient of its last occurrence. False: the sum over "
                "its occurrences")
    .infer([](InferContext& c) {
      c.set_out("Out", with_rows(c.in("X").shape, index_count(c, "Index")), c.in("X").dtype);
    })
    .grad_reads({"X", "Index"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), index = op.in("Index"), out = op.out("Out")](KernelContext& c) {
        const Index at(c[index]);
        const int64_t rows = c[x].rows();
        pick(c, c[x], c[out].rows(), c[x].row_elems(), &c[out], [&](int64_t i) { return at.at(i, rows); });
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [rows = RowsAt(op.dtype()), x = op.in("X"), index = op.in("Index"),
              out = op.out("Out")](const DeviceContext& c) { rows.pick(c, c[x], c[index], c[x].row_elems(), c[out]); };
    })
    .with(wrong_index("Index"));

AB_GRAD(gather)
    .doc(
        "X@GRAD = Out@GRAD, each row at its source; for rows gathered several times, the last one or, without "
        "overwrite, the sum.")
    .grad(second_order::linear)
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [overwrite = op.attr<bool>("overwrite"), index = op.in("Index"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        const Index at(c[index]);
        const int64_t rows = c[dx].rows();
        zero_bytes(c, &c[dx]);
        const int64_t n = c[dout].rows(), width = c[dx].row_elems();
        if (!overwrite) return put_back<T>(c[dout], n, width, &c[dx], [&](int64_t i) { return at.at(i, rows); });
        const T* from = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        for (int64_t i = 0; i < n; ++i) std::copy_n(from + i * width, width, to + at.at(i, rows) * width);
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto mode = op.attr<bool>("overwrite") ? device::kScatterReplace : device::kScatterAdd;
      return [mode, rows = RowsInto<T>(), checked = Positions(), index = op.in("Index"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](const DeviceContext& c) mutable {
        checked.of(c, c[index], NdIndex(c[dx].shape(), Shape{c[index].numel(), 1}));
        device::fill_zero(c, c[dx]);
        rows.put(c, c[dout], c[index], c[dx].row_elems(), mode, c[dx]);
      };
    })
    .with(wrong_index("Index"));

AB_OP(gather_nd)
    .doc("Selects elements or slices of X at the positions that the last axis of Index holds.")
    .in("X", "[...] any")
    .in("Index", "[..., depth] int32 or int64: positions on the first depth axes of X")
    .out("Out", "[other axes of Index, axes of X from depth on], dtype of X")
    .infer([](InferContext& c) {
      c.set_out("Out", gather_nd_shape(c), c.in("X").dtype);
      share_fitting_lod(c, "Out", "X");
    })
    .grad_reads({"X", "Index"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), index = op.in("Index"), out = op.out("Out")](KernelContext& c) {
        const Index at(c[index]);
        const NdIndex nd(c[x].shape(), c[index].shape());
        pick(c, c[x], nd.n, nd.width, &c[out], [&](int64_t i) { return nd.position(at, i); });
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [rows = RowsAt(op.dtype()), positions = Positions(), x = op.in("X"), index = op.in("Index"),
              out = op.out("Out")](const DeviceContext& c) mutable {
        const NdIndex nd(c[x].shape(), c[index].shape());
        rows.pick(c, c[x], positions.of(c, c[index], nd), nd.width, c[out]);
      };
    })
    .with(wrong_index("Index"));

AB_GRAD(gather_nd)
    .doc("X@GRAD = Out@GRAD, each block added at its source.")
    .grad(second_order::linear)
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [index = op.in("Index"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const Index at(c[index]);
        const NdIndex nd(c[dx].shape(), c[index].shape());
        zero_bytes(c, &c[dx]);
        put_back<T>(c[dout], nd.n, nd.width, &c[dx], [&](int64_t i) { return nd.position(at, i); });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [rows = RowsInto<T>(), positions = Positions(), index = op.in("Index"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](const DeviceContext& c) mutable {
        const NdIndex nd(c[dx].shape(), c[index].shape());
        device::fill_zero(c, c[dx]);
        rows.put(c, c[dout], positions.of(c, c[index], nd), nd.width, device::kScatterAdd, c[dx]);
      };
    })
    .with(wrong_index("Index"));

}  // namespace
}  // namespace anabranch::tensor::gather_op
