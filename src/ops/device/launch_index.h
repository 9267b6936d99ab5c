// How ops declare kernels that take ids, and groups of equal ids.
#pragma once
#include <string>

#include "ops/device/args_index.h"
#include "ops/device/launch.h"
#include "ops/device/scratch.h"

namespace anabranch::device {

// "gather/i32" for "gather" on four-byte elements: for kernels that move elements without arithmetic.
inline std::string stem_of_size(const std::string& stem, size_t bytes) {
  const char* const name = bytes == 1   ? type_name<uint8_t>
                           : bytes == 2 ? type_name<int16_t>
                           : bytes == 4 ? type_name<int32_t>
                                        : type_name<int64_t>;
  return stem + "/" + name;
}

// A kernel for int32 and int64 ids.
class KernelOfIds {
 public:
  explicit KernelOfIds(const std::string& stem) : of32_(kernel_of<int32_t>(stem)), of64_(kernel_of<int64_t>(stem)) {}
  ab_kernel of(const Tensor& ids) const { return ids.dtype() == DType::kInt32 ? of32_ : of64_; }
  ab_kernel of64() const { return of64_; }

 private:
  ab_kernel of32_, of64_;
};

// The result of "group_rows" for ids, in memory owned by the kernel.
class GroupedIds {
 public:
  // Skips ids outside of [0, height) without a report: the lookup of the rows has reported them.
  RowGroups of(const DeviceContext& c, const Tensor& ids, int64_t height) {
    return of(c, kernel_.of(ids), operand(ids), ids.numel(), height);
  }
  // int64
  RowGroups of(const DeviceContext& c, const DeviceIn& ids, int64_t height) {
    return of(c, kernel_.of64(), ids, ids.count<int64_t>(), height);
  }

 private:
  RowGroups of(const DeviceContext& c, ab_kernel kernel, const DeviceIn& ids, int64_t n, int64_t height) {
    GroupRowsArgs a{};
    a.ids = ids;
    a.rows = operand(rows_.of(c, Shape{n}, DType::kInt64));
    a.starts = operand(starts_.of(c, Shape{n + 1}, DType::kInt64));
    a.order = operand(order_.of(c, Shape{n}, DType::kInt32));
    a.count = operand(count_.of(c, Shape{1}, DType::kInt64));
    a.n = n;
    a.height = height;
    c.launch(kernel, a);
    const auto read = [](DeviceOut out) { return DeviceIn{out.address, out.bytes}; };
    return {read(a.rows), read(a.starts), read(a.order), read(a.count)};
  }

  KernelOfIds kernel_{"group_rows"};
  Scratch rows_, starts_, order_, count_;
};

}  // namespace anabranch::device
