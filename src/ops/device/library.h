// Shared by the host implementations of library calls.
#pragma once
#include <span>
#include <vector>

#include "base/error.h"
#include "core/dtype.h"
#include "device/host_library.h"
#include "ops/device/half.h"

namespace anabranch::device {

// fn(TypeTag<T>) for the float type in a description.
template <class Fn> void with_float(const char* key, int32_t dtype, Fn&& fn) {
  if (dtype == static_cast<int32_t>(DType::kFloat32)) return fn(TypeTag<float>{});
  AB_CHECK(dtype == static_cast<int32_t>(DType::kFloat64), Unsupported, "{}: element type {} is not supported", key,
           dtype);
  fn(TypeTag<double>{});
}

// An operand of a call with a 16-bit description: its number of elements, and whether the call writes it. 0 elements:
// it is float32 anyway.
struct Narrow {
  int64_t elements = 0;
  bool written = false;
};

template <class Half, class Fn>
void with_widened(void* const* pointers, std::span<const Narrow> operands, const Fn& fn) {
  std::vector<void*> wide(pointers, pointers + operands.size());
  std::vector<std::vector<float>> held(operands.size());
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!pointers[k] || operands[k].elements == 0) continue;
    const auto* from = static_cast<const Half*>(pointers[k]);
    held[k].resize(static_cast<size_t>(operands[k].elements));
    for (float& x : held[k]) x = static_cast<float>(*from++);
    wide[k] = held[k].data();
  }
  fn(TypeTag<float>{}, wide.data());
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!pointers[k] || !operands[k].written) continue;
    auto* to = static_cast<Half*>(pointers[k]);
    for (const float x : held[k]) *to++ = Half(x);
  }
}

// fn(TypeTag<T>, pointers) likewise. The CPU's kernels have no 16-bit floats: operands are converted to float, and
// results rounded.
template <class Fn>
void with_operands(const char* key, int32_t dtype, void* const* pointers, std::span<const Narrow> operands, Fn&& fn) {
  if (dtype == static_cast<int32_t>(DType::kFloat16)) return with_widened<half>(pointers, operands, fn);
  if (dtype == static_cast<int32_t>(DType::kBFloat16)) return with_widened<bfloat16>(pointers, operands, fn);
  with_float(key, dtype, [&](auto tag) { fn(tag, pointers); });
}

}  // namespace anabranch::device
