// The context of a kernel on a device. Such a kernel launches the node's work into the node's queue and returns; it
// sees the addresses, shapes and LoD of its tensors, never their contents.
#pragma once
#include <cstddef>

#include "device/devices.h"
#include "opdef/kernel_context.h"

namespace anabranch {

// Memory shared by the launches of one queue, one after the other.
class QueueWorkspace {
 public:
  explicit QueueWorkspace(int device) : device_(device) {}
  // At least this size; it grows, and pending work keeps its memory.
  void* of(size_t bytes);
  size_t bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  const int device_;
  size_t bytes_ = 0;
  std::shared_ptr<void> memory_;
};

// Device addresses of a node's inputs and outputs in the status of a run (device_status.h).
struct NodeStatus {
  void* fault = nullptr;
  const void* step = nullptr;  // uint32_t; not part of the launch, so that launches are the same in every run
  uint32_t node = 0;
};

class DeviceContext : public KernelContext {
 public:
  DeviceContext(const KernelContext& of_node, const device::Devices& devices, ab_queue* queue,
                QueueWorkspace* workspace, const NodeStatus& status)
      : KernelContext(of_node), devices_(devices), queue_(queue), workspace_(*workspace), status_(status) {}
  // Internal if the node has no queue.
  static const DeviceContext& of(const KernelContext& c);

  // `args`: the kernel's struct of ops/device/args.h.
  template <class Args> void launch(ab_kernel kernel, const Args& args) const { launch(kernel, &args, sizeof(args)); }
  void launch(ab_kernel kernel, const void* args, size_t size) const;
  // Between a device and pinned memory.
  void copy(Tensor& to, const Tensor& from) const;
  const device::Devices& devices() const { return devices_; }
  int device() const { return workspace_.device(); }
  ab_queue* queue() const { return queue_; }
  const NodeStatus& status() const { return status_; }
  void* workspace(size_t bytes) const { return bytes ? workspace_.of(bytes) : nullptr; }

 private:
  const device::Devices& devices_;
  ab_queue* queue_;
  QueueWorkspace& workspace_;
  const NodeStatus status_;
};

// The kernel of the plug-in with this key. Unsupported if there is none.
ab_kernel device_kernel(const std::string& key);

}  // namespace anabranch
