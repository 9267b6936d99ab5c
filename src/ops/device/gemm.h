// Matrix products by the library of a device, of the dims that those of the CPU have (ops/kernels/gemm.h).
#pragma once
#include "opdef/library_call.h"
#include "ops/device/args.h"
#include "ops/kernels/gemm.h"

namespace anabranch::device {

template <class T> class Gemm {
 public:
  explicit Gemm(double alpha = 1.0) : alpha_(alpha) {}
  void run(const DeviceContext& c, const GemmDims& d, const Tensor& a, const Tensor& b, Tensor& out) {
    GemmDesc desc{};
    desc.m = d.m;
    desc.n = d.n;
    desc.k = d.k;
    desc.batch = d.batch;
    desc.row_a = d.ld_a ? d.ld_a : d.trans_a ? d.m : d.k;
    desc.row_b = d.ld_b ? d.ld_b : d.trans_b ? d.k : d.n;
    desc.row_out = d.ld_c ? d.ld_c : d.n;
    desc.stride_a = d.batch_stride_a;
    desc.stride_b = d.batch_stride_b;
    desc.stride_out = d.batch_stride_c;
    desc.alpha = alpha_;
    desc.transposed_a = d.trans_a;
    desc.transposed_b = d.trans_b;
    desc.dtype = static_cast<int32_t>(dtype_of<T>);
    call_.run(c, desc, {read_by(a), read_by(b), written_by(out)});
  }

 private:
  double alpha_;
  LibraryCall call_{"gemm"};
};

}  // namespace anabranch::device
