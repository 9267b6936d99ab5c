// The CPU's kernels behind the keys of library calls, for devices without libraries of their own: the same bits as on
// the CPU.
#include "ops/device/library.h"
#include "ops/device/args.h"
#include "ops/kernels/gemm.h"

namespace anabranch::device {
namespace {

template <class T> void product(const GemmDesc& desc, void* const* pointers) {
  AB_CHECK(desc.beta == 0, Unsupported, "gemm: beta must be 0, got {}", desc.beta);
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
      .run(KernelContext(), dims, static_cast<const T*>(pointers[0]), static_cast<const T*>(pointers[1]),
           static_cast<T*>(pointers[2]));
}

void gemm(const void* desc, void* const* pointers, int) {
  const auto& d = *static_cast<const GemmDesc*>(desc);
  with_float("gemm", d.dtype, [&](auto tag) { product<typename decltype(tag)::type>(d, pointers); });
}

[[maybe_unused]] const bool offered = offer_library("gemm", {sizeof(GemmDesc), gemm});

}  // namespace
}  // namespace anabranch::device
