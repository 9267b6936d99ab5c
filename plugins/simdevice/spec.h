// Parameters of a collective on which all ranks must agree.
#pragma once
#include <cstddef>
#include <string>

#include "device/plugin_api.h"

namespace anabranch::simdevice {

struct Spec {
  ab_collective what;
  size_t count;
  int dtype, root;
  bool operator==(const Spec&) const = default;
  std::string text() const;  // "all_reduce_sum of 4 float32"
};

}  // namespace anabranch::simdevice
