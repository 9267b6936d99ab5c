#include "clock.h"

namespace anabranch::cuda {
namespace {

double ns_between(cudaEvent_t from, cudaEvent_t to) {
  float ms = 0;
  well(cudaEventElapsedTime(&ms, from, to), "time between two events");
  return double{ms} * 1e6;
}

}  // namespace

Clock::~Clock() {
  if (stream_) (void)cudaStreamDestroy(stream_);
}

std::shared_ptr<const Moment> Clock::recent() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!last_ || now - taken_ > longest_) {
    last_ = record();
    taken_ = now;
  }
  return last_;
}

std::shared_ptr<const Moment> Clock::record() {
  well(cudaSetDevice(device_), "device ", device_);
  if (!stream_) well(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "the clock's queue");
  auto moment = std::make_shared<Moment>();
  well(cudaEventCreateWithFlags(&moment->event, cudaEventDefault), "the clock's event");
  well(cudaEventRecord(moment->event, stream_), "the clock's event");
  well(cudaEventSynchronize(moment->event), "the clock's event");
  if (last_) moment->ns = last_->ns + ns_between(last_->event, moment->event);
  return moment;
}

uint64_t Clock::ns(const Moment& since, cudaEvent_t event) {
  return static_cast<uint64_t>(since.ns + ns_between(since.event, event));
}

}  // namespace anabranch::cuda
