// The devices of a process: the plug-in that FLAGS_device_plugin names, opened at first use, with the queues of each
// device and its memory pools. Plans of all threads share these queues. Any thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "device/place.h"
#include "device/plugin_api.h"

namespace anabranch::device {

enum class QueueKind : int8_t { kCompute, kUp, kDown };
inline constexpr int kQueueKinds = 3;

class Pool;

class Devices {
 public:
  // Whether the plug-in's file exists; nothing is opened.
  static bool offered();
  // Unsupported without a plug-in, Unavailable without a driver; the message says what is missing.
  static Devices& get();
  static Devices* opened();  // null: devices have not been used yet

  int count() const { return count_; }
  const ab_device_api& api() const { return *api_; }
  bool needs_marks() const { return (api_->flags & AB_DEVICE_NEEDS_MARKS) != 0; }
  // InvalidArgument when there is no such device.
  void check_device(int device) const;
  ab_queue* queue(int device, QueueKind kind) const {
    return queues_[static_cast<size_t>(device)][static_cast<size_t>(kind)];
  }
  Pool& pool(int device) { return *pools_[static_cast<size_t>(device)]; }
  Pool& pinned_pool() { return *pinned_; }
  // Waits for all work in the device's queues.
  void wait(int device) const;
  // Throws unless status is AB_OK; `doing` names the operation.
  void check(int status, const char* doing) const {
    if (status != AB_OK) [[unlikely]]
      fail(status, doing);
  }
  std::string last_error() const;  // of the last call of this thread

 private:
  Devices();
  [[noreturn]] void fail(int status, const char* doing) const;

  const ab_device_api* api_ = nullptr;
  ab_host host_{};
  int count_ = 0;
  std::vector<std::vector<ab_queue*>> queues_;  // by device, then kind
  std::vector<std::unique_ptr<Pool>> pools_;
  std::unique_ptr<Pool> pinned_;
};

}  // namespace anabranch::device
