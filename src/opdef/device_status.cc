#include "opdef/device_status.h"

#include <fmt/ranges.h>

#include <map>

#include "device/pool.h"

namespace anabranch {
namespace {

std::map<std::pair<std::string, int>, std::string>& texts() {
  static auto& all = *new std::map<std::pair<std::string, int>, std::string>();
  return all;
}

}  // namespace

DeviceStatus::DeviceStatus(int device)
    : device_(device),
      there_(device::allocate(Place::cuda(device), sizeof(Status))),
      up_(device::allocate(Place::pinned(), sizeof(Status))),
      down_(device::allocate(Place::pinned(), sizeof(Status))) {}

// The last run has passed: the pinned memory has no readers.
void DeviceStatus::begin(const device::Devices& devices, ab_queue* queue, uint32_t step) {
  *static_cast<Status*>(up_.get()) = {kNoFault, step, 0};
  devices.check(devices.api().copy(queue, there_.get(), device_, up_.get(), AB_HOST_MEMORY, sizeof(Status)), "copying");
}

void DeviceStatus::end(const device::Devices& devices, ab_queue* queue) {
  devices.check(devices.api().copy(queue, down_.get(), AB_HOST_MEMORY, there_.get(), device_, sizeof(uint64_t)),
                "copying");
}

std::function<void(OpDef&)> device_fault(int code, std::string text) {
  return [code, text = std::move(text)](OpDef& def) { texts()[{def.type(), code}] = text; };
}

bool reports_faults(const std::string& type) {
  const auto first = texts().lower_bound({type, 0});
  return first != texts().end() && first->first.first == type;
}

std::string fault_text(const std::string& type, int code, int64_t detail) {
  const auto found = texts().find({type, code});
  if (found == texts().end()) return fmt::format("the device reports fault {} with {}", code, detail);
  return fmt::format(fmt::runtime(found->second), detail);
}

std::string fault_text(const ir::Op& op, int code, int64_t detail) {
  std::string text = fault_text(op.type, code, detail);
  for (const ir::Slot& slot : op.inputs) {
    const std::string mark = "<" + slot.name + ">";
    const size_t at = text.find(mark);
    if (at != std::string::npos) text.replace(at, mark.size(), fmt::format("{}", fmt::join(slot.args, ", ")));
  }
  return text;
}

}  // namespace anabranch
