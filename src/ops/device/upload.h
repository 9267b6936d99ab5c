// Host numbers that a kernel reads on the device, such as sequence offsets and tables of positions. They are copied if
// they have changed, through pinned memory; a run ends after its copies, so the next one may overwrite it.
#pragma once
#include <cstring>
#include <utility>
#include <vector>

#include "ops/device/launch.h"

namespace anabranch::device {

class Upload {
 public:
  template <class T> DeviceIn of(const DeviceContext& c, const std::vector<T>& numbers) {
    bring(c, numbers.data(), numbers.size() * sizeof(T));
    return operand(std::as_const(there_));
  }

 private:
  void bring(const DeviceContext& c, const void* from, size_t bytes) {
    if (there_.initialized() && staged_.bytes() == bytes && std::memcmp(staged_.raw(), from, bytes) == 0) return;
    const Shape shape{static_cast<int64_t>(bytes)};
    staged_.resize(shape, {DType::kUInt8, Place::pinned()});
    there_.resize(shape, {DType::kUInt8, Place::cuda(c.device())});
    if (bytes == 0) return;
    std::memcpy(staged_.mutable_raw(), from, bytes);
    c.copy(there_, staged_);
  }

  Tensor staged_, there_;
};

}  // namespace anabranch::device
