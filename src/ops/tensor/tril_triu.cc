// Lower and upper triangles of matrices. A diagonal with a positive offset is above the main one.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::tensor::tril_triu_op {
namespace {

// Copies the part of each matrix on and below the diagonal, or on and above it; the rest is 0.
template <class T> Kernel triangle(const KernelArgs& op, const char* from, const char* to) {
  return [lower = op.attr<bool>("lower"), diagonal = int64_t{op.attr<int32_t>("diagonal")}, x = op.in(from),
          out = op.out(to)](KernelContext& c) {
    const Shape& s = c[x].shape();
    const int64_t rows = s[s.rank() - 2], cols = s[s.rank() - 1];
    const T* source = c[x].data<T>();
    T* target = c[out].mutable_data<T>();
    const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, cols));
    c.parallel_each(s.numel(0, s.rank() - 1), grain, [=](int64_t r) {
      const int64_t on = r % rows + diagonal;  // the column of the diagonal
      const int64_t first = lower ? 0 : std::clamp<int64_t>(on, 0, cols);
      const int64_t last = lower ? std::clamp<int64_t>(on + 1, 0, cols) : cols;
      T* line = target + r * cols;
      std::fill(line, line + first, T{0});
      std::copy(source + r * cols + first, source + r * cols + last, line + first);
      std::fill(line + last, line + cols, T{0});
    });
  };
}

template <class T> Kernel triangle_on_device(const KernelArgs& op, const char* from, const char* to) {
  return [kernel = device::kernel_of_size("triangle", sizeof(T)), lower = op.attr<bool>("lower"),
          diagonal = int64_t{op.attr<int32_t>("diagonal")}, x = op.in(from), out = op.out(to)](const DeviceContext& c) {
    const Shape& s = c[x].shape();
    const int axis = s.rank() - 2;
    const device::MatrixArgs a{
        device::operand(c[x]), device::operand(c[out]), s.numel(0, axis), s[axis], s[axis + 1], diagonal, lower, 0};
    c.launch(kernel, a);
  };
}

void infer_triangle(InferContext& c, const char* from, const char* to) {
  check_rank(c, from, 2, kMaxRank);
  c.same_shape(to, from);
}

AB_OP(tril_triu)
    .doc("Out = X on and below a diagonal of its matrices (lower), or on and above it (upper), else 0.")
    .in("X", "[..., rows, columns] numbers")
    .out("Out", "[..., rows, columns] like X")
    .attr<int32_t>("diagonal", 0, "diagonal; 0: the main one, positive: above it")
    .required_attr("lower", AttrType::kBoolean, "keeps the part on and below the diagonal; false: on and above")
    .infer([](InferContext& c) {
      infer_triangle(c, "X", "Out");
      c.share_lod("Out", "X");
    })
    .grad_reads({})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return triangle<T>(op, "X", "Out");
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return triangle_on_device<T>(op, "X", "Out");
    });

AB_GRAD(tril_triu)
    .doc("X@GRAD = Out@GRAD where X was kept, else 0.")
    .infer([](InferContext& c) { infer_triangle(c, "Out@GRAD", "X@GRAD"); })
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return triangle<T>(op, "Out@GRAD", "X@GRAD");
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return triangle_on_device<T>(op, "Out@GRAD", "X@GRAD");
    });

}  // namespace
}  // namespace anabranch::tensor::tril_triu_op
