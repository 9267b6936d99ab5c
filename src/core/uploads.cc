#include "core/uploads.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"
#include "core/host_copy.h"
#include "device/pool.h"
#include "device/purpose.h"

namespace anabranch {
namespace {

constexpr int64_t kKeptBatches = 16;  // memory that this number of batches has not used is freed

device::Devices& with_device(int device) {
  device::Devices& devices = device::Devices::get();
  devices.check_device(device);
  return devices;
}

}  // namespace

Uploads::Uploads(int device, std::string what)
    : devices_(with_device(device)), device_(device), what_(std::move(what)), there_(devices_, device) {
  devices_.check(devices_.api().queue_new(device, 0, "ahead", &queue_), "making a queue");
}

// A queue that has not passed is leaked.
Uploads::~Uploads() { devices_.api().queue_free(queue_); }

std::vector<Tensor> Uploads::bring(std::span<const Tensor> batch) {
  const device::Purpose purpose([this] { return what_; });
  ++batches_;
  if (staged_.size() < batch.size()) staged_.resize(batch.size());
  std::vector<Tensor> brought;
  try {
    for (size_t i = 0; i < batch.size(); ++i) brought.push_back(put(batch[i], i));
  } catch (...) {
    wait_quietly();
    throw;
  }
  wait();
  drop_unused();
  return brought;
}

void Uploads::wait() {
  there_.record(queue_);
  there_.wait();
}

// If that fails, too, the devices are lost and no work is pending.
void Uploads::wait_quietly() noexcept {
  try {
    wait();
  } catch (const std::exception&) {  // the first error is the one to report
  }
}

Tensor Uploads::put(const Tensor& from, size_t i) {
  AB_CHECK(from.initialized(), InvalidArgument, "tensor {} of the batch must hold a value", i);
  if (from.place() == Place::cuda(device_)) return from;
  const bool pinned = from.place() == Place::pinned() && from.contiguous();
  if (!pinned) staged_[i].copy_from(on_host(from), Place::pinned());
  const Tensor& source = pinned ? from : staged_[i];
  const std::shared_ptr<void>& memory = block_of(source.bytes());
  devices_.check(devices_.api().copy(queue_, memory.get(), device_, source.raw(), AB_HOST_MEMORY, source.bytes()),
                 "copying");
  Tensor brought;
  brought.view(memory.get(), source.shape(), {source.dtype(), Place::cuda(device_)}, memory);
  brought.set_lod(from.lod_ref());
  return brought;
}

const std::shared_ptr<void>& Uploads::block_of(size_t bytes) {
  const size_t needed = device::block_bytes(bytes);
  const auto found = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.bytes == needed && block.memory.use_count() == 1;
  });
  Block& block = found != blocks_.end()
                     ? *found
                     : blocks_.emplace_back(device::allocate(Place::cuda(device_), needed), needed, batches_);
  block.used = batches_;
  return block.memory;
}

void Uploads::drop_unused() {
  std::erase_if(blocks_, [this](const Block& block) {
    return block.memory.use_count() == 1 && batches_ - block.used > kKeptBatches;
  });
}

}  // namespace anabranch
