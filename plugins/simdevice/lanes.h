// Kernels as a GPU runs them: elements and rows in an order that a seed chooses, a row by 32 or 256 lanes, each of
// which runs until it comes to what all lanes of the row have to call; then the next one does. What they bring is put
// together in a GPU's order. Lanes that do not meet are a failure, with the kernel and the two places, and so
// are two that write the same bytes (writes.h).
#pragma once
#include <cstdint>
#include <string>

#include "ops/device/host_lanes.h"
#include "writes.h"

namespace anabranch::simdevice {

// One launch, on one thread. Seeds give orders; what comes out does not depend on them.
class ManyLanes final : public device::HostRun {
 public:
  ManyLanes(uint64_t seed, const std::vector<WrittenRange>& written, const std::string& kernel)
      : seed_(seed), kernel_(kernel), writes_(written, kernel) {}

  device::Shuffle order(int64_t n) override;
  bool watches(int64_t n) override { return writes_.begin(n); }
  void ran(int64_t element) override { writes_.note({element}); }
  void rows(int64_t n, int64_t lanes, const void* body, Row row) override;

 private:
  uint64_t seed_;
  const std::string& kernel_;
  Writes writes_;
};

}  // namespace anabranch::simdevice
