// The slices of a concat's gradient that are still needed after the pass fuse_embeddings has fused the others.
#include <cstring>

#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"

namespace anabranch::sparse::concat_grad_parts_op {
namespace {

constexpr int64_t kGrainBytes = 65536;

void infer(InferContext& c) {
  const auto& column = c.attr<std::vector<int32_t>>("column");
  const int n = c.n_in("X");
  AB_CHECK(n > 0 && c.n_out("X@GRAD") == n && column.size() == static_cast<size_t>(n), InvalidArgument,
           "X, X@GRAD and column must have the same number of entries, got {}, {} and {}", n, c.n_out("X@GRAD"),
           column.size());
  const Meta& dout = c.in("Out@GRAD");
  for (int i = 0; i < n; ++i) {
    const Meta& x = c.in("X", i);
    AB_CHECK(x.shape.rank() == 2 && dout.shape.rank() == 2 && column[i] >= 0, ShapeMismatch,
             "X[{}] is {}, Out@GRAD is {}, column {}", i, x.shape.str(), dout.shape.str(), column[i]);
    AB_CHECK(!c.runtime() || (x.shape[0] == dout.shape[0] && column[i] + x.shape[1] <= dout.shape[1]), ShapeMismatch,
             "X[{}] must be within Out@GRAD, got {} at column {} of {}", i, x.shape.str(), column[i], dout.shape.str());
    c.set_out("X@GRAD", x.shape, dout.dtype, i);
    c.out("X@GRAD", i).lod = x.lod;
    c.out("X@GRAD", i).lod_level = x.lod_level;
  }
}

Kernel queued_parts(const KernelArgs& op) {
  AB_CHECK(op.dtype() == DType::kFloat32 || op.dtype() == DType::kFloat64, Unsupported,
           "dtype must be float32 or float64, got {}", dtype_name(op.dtype()));
  return [dout = op.in("Out@GRAD"), dxs = op.out("X@GRAD"), column = op.attr<std::vector<int32_t>>("column"),
          copy = device::OnDevice(op.dtype())](KernelContext& c) {
    for (int i = 0; i < dxs.count; ++i) {
      if (!c.needs(dxs, i)) continue;
      Tensor& dx = c.at(dxs, i);
      NdLoop<2> loop;
      loop.add_axis(dx.rows(), {dx.row_elems(), c[dout].row_elems()});
      loop.add_axis(dx.row_elems(), {1, 1});
      copy.strided(c, loop, c[dout], column[static_cast<size_t>(i)], &dx, 0);
    }
  };
}

AB_OP(concat_grad_parts)
    .doc("X@GRAD[i] = the columns of Out@GRAD from column[i] on, in the width of X[i]. Inserted by the engine.")
    .in_list("X", "[rows, columns]; only their shapes are read")
    .in("Out@GRAD", "[rows, columns]")
    .out_list("X@GRAD", "like X")
    .attr<std::vector<int32_t>>("column", {}, "of each X: first column of its slice")
    .infer(infer)
    .no_grad("it is inserted after the gradients")
    .dtype_of_input("Out@GRAD")
    .device_any(queued_parts)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [dout = op.in("Out@GRAD"), dxs = op.out("X@GRAD"),
              column = op.attr<std::vector<int32_t>>("column")](KernelContext& c) {
        const size_t size = dtype_size(c[dout].dtype()), step = static_cast<size_t>(c[dout].row_elems()) * size;
        for (int i = 0; i < dxs.count; ++i) {
          if (!c.needs(dxs, i)) continue;
          Tensor& dx = c.at(dxs, i);
          const size_t bytes = static_cast<size_t>(dx.row_elems()) * size;
          const char* from = static_cast<const char*>(c[dout].raw()) + static_cast<size_t>(column[i]) * size;
          char* to = static_cast<char*>(dx.mutable_raw());
          c.parallel_for(dx.rows(), kGrainBytes / static_cast<int64_t>(bytes + 1) + 1, [=](int64_t begin, int64_t end) {
            for (auto r = static_cast<size_t>(begin); r < static_cast<size_t>(end); ++r) {
              std::memcpy(to + r * bytes, from + r * step, bytes);
            }
          });
        }
      };
    });

}  // namespace
}  // namespace anabranch::sparse::concat_grad_parts_op
