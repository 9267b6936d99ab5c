#include "opdef/library_call.h"

#include <algorithm>

#include "device/settle.h"

namespace anabranch {

void LibraryCall::plan(const DeviceContext& c, const void* desc, size_t size) {
  const auto* bytes = static_cast<const char*>(desc);
  if (planned_ && std::equal(desc_.begin(), desc_.end(), bytes, bytes + size)) return;
  const device::Devices& devices = c.devices();
  const int device = c.device();
  ab_library* made = nullptr;
  devices.check(devices.api().library_plan(device, key_.c_str(), desc, size, &made, &room_), "planning a library call");
  desc_.assign(bytes, bytes + size);
  planned_ = {made, [&devices, device](ab_library* old) {
                device::settle(devices, device);  // a queue may still use it
                devices.api().library_free(old);
              }};
}

void LibraryCall::run(const DeviceContext& c, const void* desc, size_t size,
                      std::initializer_list<ab_operand> operands) {
  plan(c, desc, size);
  c.devices().check(c.devices().api().library_run(c.queue(), planned_.get(), operands.begin(),
                                                  static_cast<int>(operands.size()), c.workspace(room_), room_),
                    "calling a library");
}

}  // namespace anabranch
