#include "opdef/made_kernel.h"

#include "device/settle.h"

namespace anabranch {

void MadeKernel::make(const DeviceContext& c, const void* table, size_t size) {
  const device::Devices& devices = c.devices();
  ab_kernel made = nullptr;
  const int status = devices.api().kernel_make(kernel_, table, size, &made);
  asked_ = true;
  if (status == AB_UNSUPPORTED) return;
  devices.check(status, "making a kernel");
  const int device = c.device();
  made_ = {made, [&devices, device](ab_kernel old) {
             device::settle(devices, device);  // a queue may still use it
             devices.api().kernel_free(old);
           }};
  kernel_ = made;
}

}  // namespace anabranch
