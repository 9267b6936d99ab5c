// Where a tensor lives and an op runs. Only CPU places execute in this build; the others exist so that programs that
// name them get a typed error instead of a silent change of device.
#pragma once
#include <cstdint>
#include <string>

namespace anabranch {

enum class PlaceKind : uint8_t { kCpu, kCuda, kCudaPinned };

struct Place {
  PlaceKind kind = PlaceKind::kCpu;
  int id = 0;
  bool operator==(const Place&) const = default;
  std::string str() const {
    if (kind == PlaceKind::kCpu) return "CPUPlace";
    if (kind == PlaceKind::kCudaPinned) return "CUDAPinnedPlace";
    return "CUDAPlace(" + std::to_string(id) + ")";
  }
};

}  // namespace anabranch
