// Products of slices of tensors. The steps of a recurrence differ in their number of rows: a plan is kept for each
// number, so no step makes one after the longest batch has run.
#pragma once
#include <vector>

#include "ops/device/gemm.h"
#include "ops/device/slab.h"

namespace anabranch::device {

template <class T> class PartGemm {
 public:
  // out = a b, or adds to out.
  void run(const DeviceContext& c, const GemmDims& d, Slab<const T> a, Slab<const T> b, Slab<T> out, bool add) {
    GemmDesc desc = described_gemm<T>(d, 1.0);
    desc.beta = add ? 1.0 : 0.0;
    call_.run(c, desc, {a.operand(AB_READ), b.operand(AB_READ), out.operand(add ? AB_READ_WRITE : AB_WRITE)});
  }

 private:
  LibraryCall call_{"gemm"};
};

template <class T> class GemmByRows {
 public:
  void run(const DeviceContext& c, const GemmDims& d, Slab<const T> a, Slab<const T> b, Slab<T> out, bool add) {
    const auto rows = static_cast<size_t>(d.m);
    while (products_.size() <= rows) products_.emplace_back();
    products_[rows].run(c, d, a, b, out, add);
  }

 private:
  std::vector<PartGemm<T>> products_;
};

}  // namespace anabranch::device
