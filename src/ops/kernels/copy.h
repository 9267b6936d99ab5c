// Copies a tensor's bytes to a tensor of the same size, or zeroes them.
#pragma once
#include <cstring>

#include "opdef/kernel_context.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch {

// A row of one or two numbers: calling memcpy would cost more than the copy.
inline void copy_row(const void* from, size_t bytes, void* to) {
  switch (bytes) {
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    case 12: std::memcpy(to, from, 12); return;
    case 16: std::memcpy(to, from, 16); return;
    default: std::memcpy(to, from, bytes);
  }
}

// Runs on idle workers; does nothing if both tensors share their memory.
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
