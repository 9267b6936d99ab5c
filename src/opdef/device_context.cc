#include "opdef/device_context.h"

#include "base/error.h"
#include "device/pool.h"

namespace anabranch {

void* QueueWorkspace::of(size_t bytes) {
  if (bytes > bytes_) {
    memory_ = device::allocate(Place::cuda(device_), bytes);
    bytes_ = bytes;
  }
  return memory_.get();
}

const DeviceContext& DeviceContext::of(const KernelContext& c) {
  AB_CHECK(c.call == KernelContext::Call::kQueued, Internal, "the kernel of a device is called without a queue");
  return static_cast<const DeviceContext&>(c);
}

void DeviceContext::launch(ab_kernel kernel, const void* args, size_t size) const {
  const ab_device_api& api = devices_.api();
  size_t room = 0;
  devices_.check(api.kernel_room(kernel, args, size, &room), "asking how much memory a kernel needs");
  devices_.check(api.launch(queue_, kernel, args, size, workspace(room), room), "launching a kernel");
}

void DeviceContext::copy(Tensor& to, const Tensor& from) const {
  const auto device = [](const Tensor& t) { return t.place().on_host() ? AB_HOST_MEMORY : int{t.place().id}; };
  devices_.check(devices_.api().copy(queue_, to.mutable_raw(), device(to), from.raw(), device(from), to.bytes()),
                 "copying");
}

ab_kernel device_kernel(const std::string& key) {
  const device::Devices& devices = device::Devices::get();
  ab_kernel found = nullptr;
  const int status = devices.api().kernel_find(key.c_str(), &found);
  AB_CHECK(status != AB_NOT_FOUND, Unsupported, "{} has no kernel {}", devices.api().name, key);
  devices.check(status, "looking for a kernel");
  return found;
}

}  // namespace anabranch
