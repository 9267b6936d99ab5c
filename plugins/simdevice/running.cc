#include "running.h"

#include "ops/device/element.h"

namespace anabranch::simdevice {
namespace {

thread_local Running* running = nullptr;

}  // namespace

Running::Running(Machine& machine, ab_queue& queue, const Item& item)
    : machine_(machine),
      queue_(queue),
      item_(item),
      now_{queue.id, queue.clock.of(queue.id), item.label},
      clock_(queue.clock),
      outer_(running) {
  running = this;
}

Running::~Running() { running = outer_; }

Running& Running::here() {
  if (!running) fail(AB_FAULT, "device memory is used outside of a kernel");
  return *running;
}

void Running::refuse(const Access& other, const std::string& what) {
  fail(AB_FAULT, "race: ", *item_.label, " and ", *other.label, " on ", what, ": no event orders them");
}

char* Running::touch(int device, const void* address, size_t bytes, ab_access how) {
  const Lock lock(machine_.mutex);
  const int lies_on = machine_.mapping().device_of(address);
  if (lies_on != device) {
    fail(AB_FAULT, *item_.label, " uses an address of ", lies_on < 0 ? "no device" : said("device ", lies_on),
         " as memory of device ", device);
  }
  size_t within = 0;
  Block& block = machine_.memory(device).find(address, bytes, &within);
  if (block.born >= item_.asof) {
    fail(AB_FAULT, *item_.label, " uses block ", block.number, " of device ", device,
         ", which was allocated after its arguments were recorded");
  }
  const Access other = block.audit.touch(within, within + bytes, how, now_, clock_);
  if (other.queue >= 0) {
    refuse(other, said("bytes ", within, " to ", within + bytes, " of block ", block.number, " of device ", device));
  }
  char* const at = machine_.mapping().host(device, machine_.mapping().offset_of(address));
  if (how != AB_READ) touched_.emplace_back(device, address);
  if (how == AB_WRITE || how == AB_READ_WRITE) written_.push_back({at, bytes});
  return at;
}

char* Running::touch_pinned(const void* address, size_t bytes, ab_access how) {
  const Lock lock(machine_.mutex);
  const Access other = machine_.pinned.touch(address, bytes, how, now_, clock_);
  if (other.queue >= 0) refuse(other, said(bytes, " bytes of pinned memory"));
  return static_cast<char*>(const_cast<void*>(address));
}

void Running::check_zones() {
  const Lock lock(machine_.mutex);
  for (const auto& [device, address] : touched_) {
    if (!machine_.memory(device).intact(address)) {
      fail(AB_FAULT, *item_.label, " has written beyond a block of device ", device);
    }
  }
}

}  // namespace anabranch::simdevice

void* anabranch::device::host_address(const void* address, size_t bytes, ab_access access) {
  return anabranch::simdevice::Running::here().touch(address, bytes, access);
}
