// How workers and servers synchronize: the values of attribute distributed_mode of a server, which it also tells its
// workers. Python has the same enum, _core.Mode.
#pragma once
#include <cstdint>
#include <optional>

namespace anabranch::rpc {

enum class Mode : uint32_t {
  kSync = 0,       // servers apply the gradients of all workers once per step
  kAsync = 1,      // each gradient at once
  kHalfAsync = 2,  // the same; the threads of one worker wait for each other
  kGeo = 3,        // workers train on their own, and exchange differences
};

// Of a number from a program or another process; none: it is not a mode.
inline std::optional<Mode> mode_of(int64_t number) {
  if (number < 0 || number > static_cast<int64_t>(Mode::kGeo)) return std::nullopt;
  return static_cast<Mode>(number);
}

// What the send at the end of a GEO worker's startup program names, in Fluid's format: it tells the worker to count
// differences from now on.
inline constexpr const char* kGeoStart = "param_init";

}  // namespace anabranch::rpc
