// Copies batches to a device while its runs go on: through a separate queue, into memory that is reused once no tensor
// holds it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "device/devices.h"
#include "device/event.h"

namespace anabranch {

class Uploads {
 public:
  // `device` is its number, `what` the purpose under which its memory is listed. InvalidArgument if there is no such
  // device.
  Uploads(int device, std::string what);
  ~Uploads();
  Uploads(const Uploads&) = delete;

  // Copies on the device, with their LoD, complete on return. One thread at a time. A tensor may be dropped only when
  // the device no longer reads it, such as after a run that was fed with it.
  std::vector<Tensor> bring(std::span<const Tensor> batch);

 private:
  struct Block {
    std::shared_ptr<void> memory;
    size_t bytes;
    int64_t used;  // number of the last batch in it
  };

  Tensor put(const Tensor& from, size_t i);
  const std::shared_ptr<void>& block_of(size_t bytes);
  void wait();
  void wait_quietly() noexcept;
  void drop_unused();

  device::Devices& devices_;
  const int device_;
  const std::string what_;
  ab_queue* queue_ = nullptr;
  device::Event there_;
  std::vector<Tensor> staged_;  // in pinned memory, by position in the batch
  std::vector<Block> blocks_;
  int64_t batches_ = 0;
};

}  // namespace anabranch
