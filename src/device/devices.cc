#include "device/devices.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>

#include "base/counted.h"
#include "base/error.h"
#include "base/flags.h"
#include "base/plugin.h"
#include "device/build.h"
#include "device/event.h"
#include "device/host_library.h"
#include "device/pool.h"

namespace anabranch::device {
namespace {

std::atomic<Devices*> open_devices{nullptr};

std::string plugin_name() { return std::get<std::string>(get_flag("FLAGS_device_plugin")); }
std::string plugin_file() { return "anabranch_" + plugin_name() + ".so"; }

// Arguments of kernels are structs of this very version, wherever the table is the same.
void check_build() {
  const char* without = "programs run on CPUs only";
  const auto build = reinterpret_cast<ab_device_build_entry>(load_plugin(plugin_file(), AB_DEVICE_BUILD, without));
  AB_CHECK(std::string(build()) == ANABRANCH_VERSION, Unsupported,
           "{} was built for anabranch {}, this is anabranch {}: install the plug-in of this version", plugin_file(),
           build(), ANABRANCH_VERSION);
}

const ab_device_api* load_table() {
  check_build();
  void* entry = load_plugin(plugin_file(), AB_DEVICE_SYMBOL, "programs run on CPUs only");
  const ab_device_api* api = reinterpret_cast<ab_device_entry>(entry)();
  AB_CHECK(api && api->size >= sizeof(ab_device_api), Unsupported,
           "{} is older than this build: its table has {} bytes, {} are needed", plugin_file(), api ? api->size : 0,
           sizeof(ab_device_api));
  return api;
}

const char* setting(void*, const char* name) {
  thread_local std::string text;
  try {
    const FlagValue value = get_flag(std::string("FLAGS_") + name);
    text = std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
  } catch (const Error&) {
    return nullptr;
  }
  return text.c_str();
}

int answer(int status, const std::string& why, char* text, size_t room) {
  if (room) text[why.copy(text, room - 1)] = '\0';
  return status;
}

int library_room(void*, const char* key, const void*, size_t size, size_t* workspace, char* text, size_t room) {
  const HostLibrary* library = find_library(key);
  if (!library) return answer(AB_NOT_FOUND, "the engine has no such library call", text, room);
  if (library->desc_size != size) return answer(AB_INVALID_ARGUMENT, "the description has the wrong size", text, room);
  *workspace = 0;
  return AB_OK;
}

int library_run(void*, const char* key, const void* desc, size_t, void* const* pointers, int count, void*, char* text,
                size_t room) {
  try {
    find_library(key)->run(desc, pointers, count);
    return AB_OK;
  } catch (const std::exception& e) {
    return answer(AB_INTERNAL, e.what(), text, room);
  }
}

ErrorKind kind_of(int status) {
  switch (status) {
    case AB_UNSUPPORTED: return ErrorKind::kUnsupported;
    case AB_RESOURCE_EXHAUSTED: return ErrorKind::kResourceExhausted;
    case AB_UNAVAILABLE:
    case AB_TIMED_OUT:
    case AB_FAULT: return ErrorKind::kUnavailable;
    default: return ErrorKind::kInternal;
  }
}

}  // namespace

bool Devices::offered() { return has_plugin(plugin_file()); }

Devices* Devices::opened() { return open_devices.load(std::memory_order_acquire); }

// Never closed: values of the user's scopes may lie there until the process ends.
Devices& Devices::get() {
  if (Devices* there = opened()) return *there;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (Devices* there = opened()) return *there;
  auto* made = new Devices();
  open_devices.store(made, std::memory_order_release);
  return *made;
}

Devices::Devices() : api_(load_table()) {
  host_.size = sizeof(host_);
  host_.setting = setting;
  host_.library_room = library_room;
  host_.library_run = library_run;
  check(api_->open(&host_, &count_), "opening the devices");
  static constexpr std::array<const char*, kQueueKinds> kNames{"compute", "up", "down"};
  for (int d = 0; d < count_; ++d) {
    auto& queues = queues_.emplace_back(kQueueKinds);
    for (size_t k = 0; k < queues.size(); ++k) check(api_->queue_new(d, 0, kNames[k], &queues[k]), "making a queue");
    pools_.push_back(std::make_unique<Pool>(*this, Place::cuda(d)));
  }
  pinned_ = std::make_unique<Pool>(*this, Place::pinned());
}

void Devices::check_device(int device) const {
  AB_CHECK(device >= 0 && device < count_, InvalidArgument, "CUDAPlace({}): this machine has {}", device,
           counted(count_, "device"));
}

void Devices::wait(int device) const {
  for (ab_queue* queue : queues_[static_cast<size_t>(device)]) {
    Event event(*this, device);
    event.record(queue);
    event.wait();
  }
}

std::string Devices::last_error() const {
  std::string text(1024, '\0');
  text.resize(std::min(api_->last_error(text.data(), text.size()), text.size() - 1));
  return text;
}

void Devices::fail(int status, const char* doing) const {
  throw Error(kind_of(status), fmt::format("{}: {}: {}", api_->name, doing, last_error()));
}

}  // namespace anabranch::device
