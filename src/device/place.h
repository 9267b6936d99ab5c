// Where a tensor lies and an op runs. Devices are those of the plug-in that FLAGS_device_plugin names.
#pragma once
#include <cstdint>
#include <string>

namespace anabranch {

enum class PlaceKind : uint8_t { kCpu, kCuda, kCudaPinned };  // the numbers of plugin_api.h

struct Place {
  PlaceKind kind = PlaceKind::kCpu;
  uint8_t unused = 0;  // so that places are compared as four bytes
  int16_t id = 0;

  static constexpr Place cuda(int id) { return {PlaceKind::kCuda, 0, static_cast<int16_t>(id)}; }
  static constexpr Place pinned() { return {PlaceKind::kCudaPinned, 0, 0}; }
  bool operator==(const Place&) const = default;
  // The CPU may read and write what lies there.
  constexpr bool on_host() const { return kind != PlaceKind::kCuda; }
  std::string str() const {
    if (kind == PlaceKind::kCpu) return "CPUPlace";
    if (kind == PlaceKind::kCudaPinned) return "CUDAPinnedPlace";
    return "CUDAPlace(" + std::to_string(id) + ")";
  }
};
static_assert(sizeof(Place) == 4);

}  // namespace anabranch
