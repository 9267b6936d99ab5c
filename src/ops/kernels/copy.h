// A tensor's bytes copied into a tensor of the same size, or set to zero.
#pragma once
#include <cstring>

#include "opdef/kernel_context.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch {

// On idle workers; nothing happens where both are one memory.
inline void copy_bytes(const KernelContext& c, const Tensor& from, Tensor* to) {
  AB_CHECK(from.bytes() == to->bytes(), Internal, "{} is copied to {}", from.shape().str(), to->shape().str());
  if (from.raw() == to->raw()) return;
  const auto* source = static_cast<const char*>(from.raw());
  auto* target = static_cast<char*>(to->mutable_raw());
  c.parallel_for(static_cast<int64_t>(from.bytes()), kCheapGrain * 4, [=](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
  });
}

inline void zero_bytes(const KernelContext& c, Tensor* to) {
  auto* target = static_cast<char*>(to->mutable_raw());
  c.parallel_for(static_cast<int64_t>(to->bytes()), kCheapGrain * 4,
                 [=](int64_t begin, int64_t end) { std::memset(target + begin, 0, static_cast<size_t>(end - begin)); });
}

}  // namespace anabranch
