// What the host sides of library calls share.
#pragma once
#include "base/error.h"
#include "core/dtype.h"
#include "device/host_library.h"

namespace anabranch::device {

// fn(TypeTag<T>) for the float type that a description names.
template <class Fn> void with_float(const char* key, int32_t dtype, Fn&& fn) {
  if (dtype == static_cast<int32_t>(DType::kFloat32)) return fn(TypeTag<float>{});
  AB_CHECK(dtype == static_cast<int32_t>(DType::kFloat64), Unsupported, "{}: of element type {}", key, dtype);
  fn(TypeTag<double>{});
}

}  // namespace anabranch::device
