// What the kernel of a node on a device is called with. Such a kernel launches what its node does into the node's queue
// and returns; it sees the addresses, shapes and LoD of its tensors, never what they hold.
#pragma once
#include <cstddef>

#include "device/devices.h"
#include "opdef/kernel_context.h"

namespace anabranch {

// Memory that launches of one queue use one after the other.
class LaneWorkspace {
 public:
  explicit LaneWorkspace(int device) : device_(device) {}
  // At least so much; it grows, and what is under way keeps the memory it has.
  void* of(size_t bytes);
  size_t bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  const int device_;
  size_t bytes_ = 0;
  std::shared_ptr<void> memory_;
};

// Where in device memory a node of a run finds and leaves its words (device_words.h).
struct NodeWords {
  void* fault = nullptr;
  const void* step = nullptr;  // uint32_t; it is not in the launch, so that launches stay the same in every run
  uint32_t node = 0;
};

class DeviceContext : public KernelContext {
 public:
  DeviceContext(const KernelContext& of_node, const device::Devices& devices, ab_queue* queue, LaneWorkspace* workspace,
                const NodeWords& words)
      : KernelContext(of_node), devices_(devices), queue_(queue), workspace_(*workspace), words_(words) {}
  // Internal when the node has no queue.
  static const DeviceContext& of(const KernelContext& c);

  // `args`: the kernel's struct of ops/device/args.h.
  template <class Args> void launch(ab_kernel kernel, const Args& args) const { launch(kernel, &args, sizeof(args)); }
  void launch(ab_kernel kernel, const void* args, size_t size) const;
  // Between a device and pinned memory.
  void copy(Tensor& to, const Tensor& from) const;
  const device::Devices& devices() const { return devices_; }
  int device() const { return workspace_.device(); }
  ab_queue* queue() const { return queue_; }
  const NodeWords& words() const { return words_; }
  void* workspace(size_t bytes) const { return bytes ? workspace_.of(bytes) : nullptr; }

 private:
  const device::Devices& devices_;
  ab_queue* queue_;
  LaneWorkspace& workspace_;
  const NodeWords words_;
};

// The kernel of the plug-in with this key. Unsupported when there is none.
ab_kernel device_kernel(const std::string& key);

}  // namespace anabranch
