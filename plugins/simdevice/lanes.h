// Runs kernels as a GPU does. A seed determines the order of elements and rows. A row has 32 or 256 lanes: each runs
// until it reaches a call that all lanes of the row must make, and then the next one runs. The contributions of the
// lanes are combined in a GPU's order. Lanes that do not reach the same call are a failure, which names the kernel and
// the two places, and so are lanes that write the same bytes (writes.h).
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
