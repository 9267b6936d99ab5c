// The plug-in's state while it is open, and a wrapper for functions of the interface.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clock.h"
#include "errors.h"

namespace anabranch::cuda {

// Objects that exist. Names are those of errors.
enum class Thing : uint8_t { kMemory, kPinned, kQueues, kEvents, kKernels, kLibraries, kGraphs, kComms };
inline constexpr std::array<const char*, 8> kThingNames{"blocks of device memory",
                                                        "blocks of pinned memory",
                                                        "queues",
                                                        "events",
                                                        "made kernels",
                                                        "library calls",
                                                        "graphs",
                                                        "communicators"};

class Process {
 public:
  Process(const ab_host* host, int devices);

  const int devices;
  void check_device(int device) const {
    if (device < 0 || device >= devices) [[unlikely]]
      fail(AB_INVALID_ARGUMENT, "there is no device ", device, "; there are ", devices);
  }
  Clock& clock(int device) { return *clocks_[static_cast<size_t>(device)]; }

  bool setting(const char* name, bool otherwise) const;  // of a boolean flag
  int64_t number(const char* name, int64_t otherwise) const;

  bool faulted() const { return faulted_.load(std::memory_order_acquire); }
  void check_fault() const {
    if (faulted()) [[unlikely]]
      throw Failure(AB_FAULT, fault_);
  }
  // The first fault is kept, with the marks of the queues at that time. Returns its text.
  const std::string& set_fault(const std::string& text);

  void made(Thing thing) { counts_[static_cast<size_t>(thing)].fetch_add(1, std::memory_order_relaxed); }
  // After a fault, freeing succeeds regardless of CUDA's result.
  void freed(Thing thing, cudaError_t error, const char* doing);
  std::string left() const;

  void add(ab_queue* queue);
  void remove(ab_queue* queue);

  // Objects created once per device until close(), such as a library's handle.
  std::shared_ptr<void> kept(const std::string& key, int device, const std::function<std::shared_ptr<void>()>& make);

 private:
  std::string marks() const;
  std::string text_of(const char* name) const;  // of a flag, empty if it is not set

  const ab_host* const host_;
  std::vector<std::unique_ptr<Clock>> clocks_;
  std::array<std::atomic<int64_t>, kThingNames.size()> counts_{};
  mutable std::mutex mutex_;
  std::atomic<bool> faulted_{false};
  std::string fault_;  // written once, before faulted_
  std::set<ab_queue*> queues_;
  std::mutex making_;
  std::map<std::pair<std::string, int>, std::shared_ptr<void>> kept_;
};

Process& process();  // Unavailable if it is not open, or in a forked process
[[noreturn]] void throw_fault(const std::string& text);

// Wrapper of every function of the interface: fn(process).
template <class Fn> int called(Fn&& fn) {
  return told([&] { fn(process()); });
}

// For functions that wait, query an event or enqueue work: after a fault they do nothing.
template <class Fn> int working(Fn&& fn) {
  return called([&](Process& p) {
    p.check_fault();
    fn(p);
  });
}

inline void use_device(int device) { well(cudaSetDevice(device), "device ", device); }

void fill_process(ab_device_api& api);
void fill_memory(ab_device_api& api);
void fill_queues(ab_device_api& api);
void fill_events(ab_device_api& api);
void fill_launches(ab_device_api& api);
void fill_graphs(ab_device_api& api);
void fill_comms(ab_device_api& api);

}  // namespace anabranch::cuda
