#include <algorithm>

#include "ops/device/args_tensor.h"
#include "ops/device/launch.h"
#include "ops/tensor/fill.h"

namespace anabranch::tensor::eye_op {
namespace {

AB_OP(eye)
    .doc("Out = a matrix with ones on the main diagonal.")
    .out("Out", "[num_rows, num_columns]")
    .required_attr("num_rows", AttrType::kLong, "rows")
    .attr<int64_t>("num_columns", -1, "number of columns; -1: num_rows")
    .attr<int32_t>("dtype", 5, "id of the element type")
    .infer([](InferContext& c) {
      const int64_t rows = c.attr<int64_t>("num_rows"), columns = c.attr<int64_t>("num_columns");
      AB_CHECK(rows >= 0 && columns >= -1, InvalidArgument,
               "num_rows must be at least 0 and num_columns at least -1, got {} and {}", rows, columns);
      c.set_out("Out", Shape{rows, columns == -1 ? rows : columns}, dtype_attr(c.op()));
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return visit_dtype(dtype_attr(op.op()), [&]<class T>(TypeTag<T>) -> Kernel {
        return [out = op.out("Out")](KernelContext& c) {
          const int64_t rows = c[out].shape()[0], columns = c[out].shape()[1];
          fill(c, &c[out], T(0));
          T* to = c[out].mutable_data<T>();
          for (int64_t i = 0; i < std::min(rows, columns); ++i) to[i * columns + i] = T(1);
        };
      });
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return visit_dtype(dtype_attr(op.op()), [&]<class T>(TypeTag<T>) -> Kernel {
        return [kernel = device::kernel_of<T>("eye"), out = op.out("Out")](const DeviceContext& c) {
          const Shape& s = c[out].shape();
          c.launch(kernel, device::MatrixArgs{{}, device::operand(c[out]), 1, s[0], s[1], 0, 0, 0});
        };
      });
    });

}  // namespace
}  // namespace anabranch::tensor::eye_op
