// Library calls by the CPU's kernels, for devices without libraries: bit-identical to the CPU.
#include "ops/device/library.h"

#include <algorithm>
#include <array>

#include "ops/device/args.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/simd.h"

namespace anabranch::device::library_op {
namespace {

template <class T> void product(const GemmDesc& desc, void* const* pointers, T* out) {
  GemmEpilogue epilogue;
  if (desc.epilogue != 0) {
    AB_CHECK((std::is_same_v<T, float> && desc.k > 0), Unsupported,
             "gemm: epilogue must be 0 for float64 and for k = 0, got {}", desc.epilogue);
    if (desc.epilogue & kGemmBias) epilogue.row = static_cast<const float*>(pointers[3]);
    if (desc.epilogue & kGemmRelu) epilogue.act = simd::relu;
  }
  GemmDims dims;
  dims.m = desc.m;
  dims.n = desc.n;
  dims.k = desc.k;
  dims.trans_a = desc.transposed_a != 0;
  dims.trans_b = desc.transposed_b != 0;
  dims.batch = desc.batch;
  dims.batch_stride_a = desc.stride_a;
  dims.batch_stride_b = desc.stride_b;
  dims.batch_stride_c = desc.stride_out;
  dims.ld_a = desc.row_a;
  dims.ld_b = desc.row_b;
  dims.ld_c = desc.row_out;
  anabranch::Gemm<T>(desc.alpha)
      .run(KernelContext(), dims, static_cast<const T*>(pointers[0]), static_cast<const T*>(pointers[1]), out,
           epilogue);
}

// The CPU's products overwrite: with beta they are computed in another buffer.
template <class T> void added(const GemmDesc& desc, void* const* pointers) {
  AB_CHECK(desc.beta == 1 && desc.batch == 1 && desc.epilogue == 0, Unsupported,
           "gemm: beta must be 0, or 1 for one matrix without an epilogue, got beta {} for batch {}", desc.beta,
           desc.batch);
  GemmDesc alone = desc;
  alone.row_out = desc.n;
  std::vector<T> made(static_cast<size_t>(desc.m * desc.n));
  product(alone, pointers, made.data());
  auto* out = static_cast<T*>(pointers[2]);
  for (int64_t i = 0; i < desc.m * desc.n; ++i) {
    out[i / desc.n * desc.row_out + i % desc.n] += made[static_cast<size_t>(i)];
  }
}

// Number of elements from the first matrix of a batch to the end of the last one.
int64_t reach(int64_t rows, int64_t columns, int64_t row, int64_t batch, int64_t stride) {
  return rows * columns == 0 || batch == 0 ? 0 : (batch - 1) * stride + (rows - 1) * row + columns;
}

void gemm(const void* desc, void* const* pointers, int count) {
  const auto& d = *static_cast<const GemmDesc*>(desc);
  const bool biased = (d.epilogue & kGemmBias) != 0;
  AB_CHECK(count == 3 + biased, InvalidArgument, "gemm takes {} operands, got {}", 3 + biased, count);
  const int64_t rows_a = d.transposed_a ? d.k : d.m, rows_b = d.transposed_b ? d.n : d.k;
  const std::array<Narrow, 4> operands = {
      Narrow{reach(rows_a, d.m * d.k / std::max<int64_t>(rows_a, 1), d.row_a, d.batch, d.stride_a)},
      Narrow{reach(rows_b, d.n * d.k / std::max<int64_t>(rows_b, 1), d.row_b, d.batch, d.stride_b)},
      Narrow{reach(d.m, d.n, d.row_out, d.batch, d.stride_out), true}, Narrow{d.n}};
  with_operands("gemm", d.dtype, pointers, std::span(operands).first(static_cast<size_t>(count)),
                [&]<class T>(TypeTag<T>, void* const* p) {
                  d.beta == 0 ? product(d, p, static_cast<T*>(p[2])) : added<T>(d, p);
                });
}

[[maybe_unused]] const bool offered = offer_library("gemm", {sizeof(GemmDesc), gemm});

}  // namespace
}  // namespace anabranch::device::library_op
