// Nanoseconds of a device. CUDA reports the time between two events as milliseconds in a float, which is exact to a
// microsecond only for the first seconds. The start event is therefore replaced from time to time.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>

#include "errors.h"

namespace anabranch::cuda {

struct Moment {
  cudaEvent_t event = nullptr;
  double ns = 0;  // since the first moment
  Moment() = default;
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;
  ~Moment() {
    if (event) (void)cudaEventDestroy(event);
  }
};

class Clock {
 public:
  // longest: for which one moment serves.
  explicit Clock(int device, std::chrono::nanoseconds longest = std::chrono::seconds(4))
      : device_(device), longest_(longest) {}
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock();

  std::shared_ptr<const Moment> recent();  // that has passed already
  static uint64_t ns(const Moment& since, cudaEvent_t event);

 private:
  std::shared_ptr<const Moment> record();

  const int device_;
  const std::chrono::nanoseconds longest_;
  std::mutex mutex_;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<const Moment> last_;
  std::chrono::steady_clock::time_point taken_;
};

}  // namespace anabranch::cuda
