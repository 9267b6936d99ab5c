// How workers and servers synchronize: the values of a server's attribute distributed_mode. Servers send their mode to
// the workers. Python has the same enum, _core.Mode.
#pragma once
#include <cstdint>
#include <optional>

namespace anabranch::rpc {

enum class Mode : uint32_t {
  kSync = 0,       // servers apply the gradients of all workers once per step
  kAsync = 1,      // servers apply each gradient when it arrives
  kHalfAsync = 2,  // like kAsync, but the threads of a worker wait for each other
  kGeo = 3,        // workers train copies of the parameters and exchange the changes
};

// The mode with a number that comes from a program or another process; nullopt if there is no such mode.
inline std::optional<Mode> mode_of(int64_t number) {
  if (number < 0 || number > static_cast<int64_t>(Mode::kGeo)) return std::nullopt;
  return static_cast<Mode>(number);
}

// The name that the send op at the end of a GEO worker's startup program has in Fluid's format. The op makes the worker
// start to record its changes.
inline constexpr const char* kGeoStart = "param_init";

}  // namespace anabranch::rpc
