#include "opdef/made_kernel.h"

#include <cstdio>
#include <mutex>

#include "base/flags.h"
#include "device/settle.h"

namespace anabranch {
namespace {

// Results are the same, only slower: without a message the user would not look for the reason.
void say_not_made(const device::Devices& devices) {
  if (!std::get<bool>(get_flag("FLAGS_device_compile"))) return;
  static std::once_flag said;
  std::call_once(said, [&] {
    const std::string text = fmt::format(
        "anabranch: {} compiles no kernels for chains of operators, which read their steps from tables: {}\n",
        devices.api().name, devices.last_error());
    std::fputs(text.c_str(), stderr);
  });
}

}  // namespace

void MadeKernel::make(const DeviceContext& c, const void* table, size_t size) {
  const device::Devices& devices = c.devices();
  ab_kernel made = nullptr;
  const int status = devices.api().kernel_make(kernel_, table, size, &made);
  asked_ = true;
  if (status == AB_UNSUPPORTED) return say_not_made(devices);
  devices.check(status, "making a kernel");
  const int device = c.device();
  made_ = {made, [&devices, device](ab_kernel old) {
             device::settle(devices, device);  // a queue may still use it
             devices.api().kernel_free(old);
           }};
  kernel_ = made;
}

}  // namespace anabranch
