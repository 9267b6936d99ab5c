#include "process.h"

#include <charconv>

#include "handles.h"

namespace anabranch::cuda {

Process::Process(const ab_host* host, int devices) : devices(devices), host_(host) {
  for (int device = 0; device < devices; ++device) clocks_.push_back(std::make_unique<Clock>(device));
}

std::string Process::text_of(const char* name) const {
  const char* text = host_ && host_->setting ? host_->setting(host_->self, name) : nullptr;
  return text ? text : "";
}

int64_t Process::number(const char* name, int64_t otherwise) const {
  const std::string value = text_of(name);
  if (value.empty()) return otherwise;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  need(error == std::errc() && end == value.data() + value.size(), "FLAGS_", name, " must be an integer, got \"", value,
       "\"");
  return number;
}

bool Process::setting(const char* name, bool otherwise) const {
  const std::string value = text_of(name);
  if (value.empty()) return otherwise;
  if (value == "true" || value == "True" || value == "1") return true;
  need(value == "false" || value == "False" || value == "0", "FLAGS_", name, " must be true or false, got \"", value,
       "\"");
  return false;
}

const std::string& Process::set_fault(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (!faulted_) {
    fault_ = text + marks();
    faulted_.store(true, std::memory_order_release);
  }
  return fault_;
}

std::string Process::marks() const {
  std::string all;
  for (const ab_queue* queue : queues_) {
    const std::string mark = queue->mark();
    if (!mark.empty()) all += said(all.empty() ? "; last put into " : ", into ", queue->text(), ": ", mark);
  }
  return all;
}

void Process::freed(Thing thing, cudaError_t error, const char* doing) {
  if (status_of(error) == AB_FAULT) {
    set_fault(said(doing, ": ", cudaGetErrorString(error)));
  } else if (!faulted()) {
    well(error, doing);
  }
  (void)cudaGetLastError();
  counts_[static_cast<size_t>(thing)].fetch_sub(1, std::memory_order_relaxed);
}

std::string Process::left() const {
  std::string all;
  for (size_t thing = 0; thing < counts_.size(); ++thing) {
    if (const int64_t count = counts_[thing].load())
      all += said(all.empty() ? "" : ", ", count, " ", kThingNames[thing]);
  }
  return all;
}

void Process::add(ab_queue* queue) {
  const std::lock_guard lock(mutex_);
  queues_.insert(queue);
}

void Process::remove(ab_queue* queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queue);
}

std::shared_ptr<void> Process::kept(const std::string& key, int device,
                                    const std::function<std::shared_ptr<void>()>& make) {
  const std::lock_guard lock(making_);
  std::shared_ptr<void>& found = kept_[{key, device}];
  if (!found) found = make();
  return found;
}

}  // namespace anabranch::cuda
