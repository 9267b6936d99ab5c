// A kernel that a device's compiler creates for a table, or the kernel that interprets the table if none is created.
#pragma once
#include <memory>
#include <type_traits>
#include <vector>

#include "opdef/device_context.h"

namespace anabranch {

class MadeKernel {
 public:
  explicit MadeKernel(ab_kernel reads_table) : kernel_(reads_table) {}
  // Creates it at first use.
  template <class T> ab_kernel of(const DeviceContext& c, const std::vector<T>& table) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!asked_) make(c, table.data(), table.size() * sizeof(T));
    return kernel_;
  }

 private:
  void make(const DeviceContext& c, const void* table, size_t size);

  ab_kernel kernel_;
  bool asked_ = false;
  std::shared_ptr<const ab_kernel_entry> made_;
};

}  // namespace anabranch
