// Sparse rows: merges equal ids, and converts the values to a tensor.
#include <memory>

#include "core/selected_rows.h"
#include "opdef/device_rows.h"
#include "ops/declare/declare.h"
#include "ops/device/launch_rows.h"
#include "ops/kernels/copy.h"

namespace anabranch::sparse::selected_rows_op {
namespace {

AB_OP(merge_selected_rows)
    .doc("Out = the rows of X, one per id, ascending; sums the values of equal ids.")
    .in("X", "sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "sparse rows")
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("applies to gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), merged = std::make_shared<SelectedRows>()](KernelContext& c) {
        const SelectedRows& from = c.value(x).rows();
        auto& to = c.value(out).as<SelectedRows>();
        if (&from != &to) return merge_rows(from, &to);
        merge_rows(from, merged.get());
        std::swap(to, *merged);
      };
    })
    .with(rows_on_devices)
    .device<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), merge = device::MergeRows<T>()](const DeviceContext& c) mutable {
        merge(c, c.value(x).rows(), &c.value(out).as<SelectedRows>());
      };
    });

AB_OP(get_tensor_from_selected_rows)
    .doc("Out = the values of the rows of X, as a tensor.")
    .in("X", "sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "[number of rows, ...]")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      // The number of rows is known at run time.
      c.same_as("Out", "X");
      c.out("Out").kind = VarKind::kLoDTensor;
      if (c.runtime())
        c.out("Out").shape = Shape();
      else if (c.in("X").shape.rank())
        c.out("Out").shape.set(0, kUnknown);
    })
    .no_grad("applies to gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Tensor& from = c.value(x).rows().value;
        c[out].resize(from.shape(), from.dtype());
        copy_bytes(c, from, &c[out]);
      };
    });

}  // namespace
}  // namespace anabranch::sparse::selected_rows_op
