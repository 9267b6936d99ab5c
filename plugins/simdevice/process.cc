#include "process.h"

#include <unordered_set>

#include "../opened.h"
#include "touches.h"

namespace anabranch::simdevice {
namespace {

plugin::Opened<Machine> opened("simdevice");

void check_keys() {
  std::unordered_set<std::string> keys;
  for (ab_kernel k = device::first_kernel; k; k = k->next) {
    if (!keys.insert(k->key).second) fail(AB_INTERNAL, "two kernels have the key ", k->key);
  }
}

int open(const ab_host* host, int* devices) {
  return told([&] {
    given(devices, "devices");
    opened.open(host, [&] {
      check_keys();
      auto made = std::make_unique<Machine>(host, read_settings(host));
      if (made->settings.explain_touches) explain_touches(made->mapping());
      *devices = made->settings.devices;
      return made;
    });
  });
}

int close() {
  return told([] {
    const std::unique_ptr<Machine> closed = opened.close();
    stop_explaining_touches();
    const std::string left = closed->left();
    Lock lock(closed->mutex);
    closed->lose(lock, Failure(AB_FAULT, "the device was closed"));
    lock.unlock();
    need(left.empty(), "closed while there were ", left);
  });
}

int device_info(int device, ab_device_info* out) {
  return locked([&](Machine& m, Lock&) {
    need(given(out, "out").size == sizeof(ab_device_info), "ab_device_info must be of ", sizeof(ab_device_info),
         " bytes");
    const size_t bytes = m.memory(device).total();
    *out = {};
    out->size = sizeof *out;
    out->memory = bytes;
    put_text(out->name, sizeof out->name, said("simulated device ", device));
  });
}

int memory_info(int device, size_t* free_bytes, size_t* total) {
  return locked([&](Machine& m, Lock&) {
    given(free_bytes, "free_bytes") = m.memory(device).free_bytes();
    given(total, "total") = m.memory(device).total();
  });
}

}  // namespace

Machine& machine() { return opened.get(); }

void fill_process(ab_device_api& api) {
  api.open = open;
  api.close = close;
  api.last_error = last_error;
  api.device_info = device_info;
  api.memory_info = memory_info;
}

}  // namespace anabranch::simdevice
