#include "host_kernels.h"

#include <stdexcept>

#include "simdevice/fiber.h"
#include "simdevice/lanes.h"

namespace anabranch::device {
namespace {

std::vector<simdevice::WrittenRange> written;  // by the kernel that runs
std::vector<Launched> launched;

class NotedLanes final : public HostRun {
 public:
  explicit NotedLanes(simdevice::ManyLanes* lanes) : lanes_(*lanes) {}
  Shuffle order(int64_t n) override { return lanes_.order(n); }
  bool watches(int64_t n) override {
    launched.push_back({n, 1});
    return lanes_.watches(n);
  }
  void ran(int64_t element) override { lanes_.ran(element); }
  void rows(int64_t n, int64_t lanes, const void* body, Row row) override {
    launched.push_back({n, lanes});
    lanes_.rows(n, lanes, body, row);
  }

 private:
  simdevice::ManyLanes& lanes_;
};

}  // namespace

const std::vector<Launched>& last_launched() { return launched; }

Blocks& Blocks::all() {
  static Blocks blocks;
  return blocks;
}

void* host_address(const void* address, size_t bytes, ab_access access) {
  if (!Blocks::all().holds(address, bytes)) throw std::out_of_range("a kernel works outside of its operands");
  if (access == AB_READ_WRITE) written.push_back({static_cast<const char*>(address), bytes});
  return const_cast<void*>(address);
}

int run_by_lanes(const ab_kernel_entry& kernel, Launch how, const void* args) {
  static uint64_t seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()) << 32;
  written.clear();
  simdevice::ManyLanes lanes(++seed, written, kernel.key);
  NotedLanes noted(&lanes);
  launched.clear();
  if (simdevice::Fiber::work_here()) how.host = &noted;
  return kernel.run(how, args);
}

}  // namespace anabranch::device
