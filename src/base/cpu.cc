#include "base/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/flags.h"

namespace anabranch {
namespace {

// Cores that the quota pays for, or a large number when there is no quota.
double cgroup_cores() {
  constexpr double kUnlimited = 1e9;
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period) {
    return quota == "max" || period <= 0 ? kUnlimited : std::stod(quota) / period;
  }
  double microseconds = -1;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> microseconds;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  return microseconds <= 0 || period <= 0 ? kUnlimited : microseconds / period;
}

constexpr int64_t kMost = 1 << 16;  // threads that can be asked for

}  // namespace

int usable_cores() {
  static const int cores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int mask = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    double quota = 1e9;
    try {
      quota = cgroup_cores();
    } catch (const std::exception&) {
    }
    return std::max(1, static_cast<int>(std::min<double>(mask, std::ceil(quota))));
  }();
  return cores;
}

int cores_per_process(int processes) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool bound =
      sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return bound ? usable_cores() : std::max(1, usable_cores() / std::max(1, processes));
}

int threads_asked_for() {
  constexpr const char* kFlag = "FLAGS_paddle_num_threads";
  constexpr int64_t kInitial = 1;
  const auto threads = std::get<int64_t>(get_flag(kFlag));
  // The initial value, that of Fluid 1.8.5, counts only if the environment sets it.
  if (threads > 0 && (threads != kInitial || std::getenv(kFlag))) {
    return static_cast<int>(std::min(threads, kMost));
  }
  static const int64_t omp = [] {
    const char* text = std::getenv("OMP_NUM_THREADS");
    return text ? std::clamp<int64_t>(std::strtol(text, nullptr, 10), 0, kMost) : 0;
  }();
  return static_cast<int>(omp);
}

bool cpu_has_bfloat16() { return __builtin_cpu_supports("avx512bf16") != 0; }

bool cpu_has_int8() {
  if (__builtin_cpu_supports("avx512vnni")) return true;
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAvxVnni = 1u << 4;  // bit of leaf 7.1; compilers differ in its name
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvxVnni) != 0;
}

}  // namespace anabranch
