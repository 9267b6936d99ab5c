// Indexes rows by a tensor, on devices.
#pragma once
#include <fmt/format.h>

#include <algorithm>

#include "opdef/device_status.h"
#include "ops/device/launch_tensor.h"
#include "ops/tensor/row_index.h"

namespace anabranch::tensor {

// For the ops above; `slot`: the slot of the indices. Valid rows may have been written before the error.
inline auto wrong_index(const char* slot) {
  return device_fault(
      1, fmt::format("index at position {{}} must be at least 0 and below the extent that it indexes (<{}>)", slot));
}

// Rows of x, blocks of `width` elements, at ids.
class RowsAt {
 public:
  explicit RowsAt(DType dtype) : kernel_(device::stem_of_size("gather", dtype_size(dtype))) {}
  void pick(const DeviceContext& c, const Tensor& x, const Tensor& ids, int64_t width, Tensor& out) const {
    device::IndexArgs a{};
    a.x = device::operand(x);
    a.ids = device::operand(ids);
    a.y = device::operand(out);
    a.ids_count = ids.numel();
    a.height = width ? x.numel() / width : 0;
    a.width = width;
    a.fault = device::fault_of(c);
    c.launch(kernel_.of(ids), a);
  }

 private:
  device::KernelOfIds kernel_;
};

// Writes or adds a row of x to y for each id. Ids out of range are skipped without a report.
template <class T> class RowsInto {
 public:
  void put(const DeviceContext& c, const Tensor& x, const Tensor& ids, int64_t width, device::ScatterMode mode,
           Tensor& y) {
    const int64_t height = width ? y.numel() / width : 0;
    const device::RowGroups groups = grouped_.of(c, ids, height);
    c.launch(kernel_,
             device::ScatterArgs{device::operand(x), device::operand(y), groups, ids.numel(), width, -1, mode, 0});
  }

 private:
  ab_kernel kernel_ = device::kernel_of<T>("scatter");
  device::GroupedIds grouped_;
};

// The positions in the last axis of Index, as ids of blocks. An index out of range is reported and treated as 0.
class Positions {
 public:
  const Tensor& of(const DeviceContext& c, const Tensor& index, const NdIndex& nd) {
    Tensor& to = ids_.of(c, Shape{nd.n}, DType::kInt64);
    device::PositionsArgs a{};
    a.ids = device::operand(index);
    a.y = device::operand(to);
    a.n = nd.n;
    a.fault = device::fault_of(c);
    a.depth = nd.depth;
    std::copy_n(nd.extents.begin(), nd.depth, a.extent);
    c.launch(kernel_.of(index), a);
    return to;
  }

 private:
  device::KernelOfIds kernel_{"positions"};
  device::Scratch ids_;
};

}  // namespace anabranch::tensor
