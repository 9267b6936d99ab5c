// Matrix products by a device's library, with the dimensions of the CPU kernels (ops/kernels/gemm.h). FcProduct also
// adds a bias and applies relu.
#pragma once
#include <type_traits>
#include <utility>

#include "opdef/library_call.h"
#include "ops/device/launch.h"
#include "ops/kernels/gemm.h"

namespace anabranch::device {

template <class T> GemmDesc described_gemm(const GemmDims& d, double alpha) {
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
  desc.alpha = alpha;
  desc.transposed_a = d.trans_a;
  desc.transposed_b = d.trans_b;
  desc.dtype = static_cast<int32_t>(dtype_of<T>);
  return desc;
}

template <class T> class Gemm {
 public:
  explicit Gemm(double alpha = 1.0) : alpha_(alpha) {}
  void run(const DeviceContext& c, const GemmDims& d, const Tensor& a, const Tensor& b, Tensor& out) {
    call_.run(c, described(d), {read_by(a), read_by(b), written_by(out)});
  }
  // With an epilogue that GemmDesc allows; bias may be missing.
  void run(const DeviceContext& c, const GemmDims& d, const Tensor& a, const Tensor& b, const Tensor* bias, bool relu,
           Tensor& out) {
    GemmDesc desc = described(d);
    desc.epilogue = (bias ? kGemmBias : 0) | (relu ? kGemmRelu : 0);
    if (!bias) return call_.run(c, desc, {read_by(a), read_by(b), written_by(out)});
    call_.run(c, desc, {read_by(a), read_by(b), written_by(out), read_by(*bias)});
  }

 private:
  GemmDesc described(const GemmDims& d) const { return described_gemm<T>(d, alpha_); }

  double alpha_;
  LibraryCall call_{"gemm"};
};

// out = act(a b + bias), act relu or none. Both are fused into the product as its epilogue; where libraries have none -
// float64, a bias of one element for all columns, an empty sum - separate kernels do the same.
template <class T> class FcProduct {
 public:
  explicit FcProduct(bool relu)
      : relu_(relu), add_(kernel_of<T>("binary/add")), cut_(relu ? kernel_of<T>("map/relu") : nullptr) {}
  void run(const DeviceContext& c, const GemmDims& d, const Tensor& a, const Tensor& b, const Tensor* bias,
           Tensor& out) {
    const bool fused = !std::is_same_v<T, double> && d.k > 0 && (!bias || bias->numel() == d.n);
    if (fused) return product_.run(c, d, a, b, bias, relu_, out);
    product_.run(c, d, a, b, out);
    const DeviceIn made = operand(std::as_const(out));
    if (bias) {
      const auto loop = broadcast_loop(Shape{d.m, d.n}, Shape{d.m, d.n}, Shape{bias->numel()}, -1);
      c.launch(add_, BinaryArgs{made, operand(*bias), operand(out), axes_of(loop), {}});
    }
    if (relu_) c.launch(cut_, MapArgs{made, operand(out), d.m * d.n, {}});
  }

 private:
  const bool relu_;
  const ab_kernel add_, cut_;
  Gemm<T> product_;
};

}  // namespace anabranch::device
