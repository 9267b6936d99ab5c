// Pools behind the keys "pool" and "pool_grad" of library calls, by the kernels of the CPU.
#include "ops/device/library.h"
#include "ops/device/windows.h"
#include "ops/nn/pool_planes.h"

namespace anabranch::device {
namespace {

nn::PoolDims dims_of(const PoolDesc& desc) {
  nn::PoolDims d;
  d.batch = desc.batch;
  d.channels = desc.channels;
  d.channels_last = desc.window.channels_last != 0;
  d.adaptive = desc.adaptive != 0;
  d.exclusive = desc.count_padding == 0;
  d.window = window_of(desc.window);
  return d;
}

// fn(T, the kind of pool of T) of a description.
template <int kAxes, class Fn> void with_kind(const PoolDesc& desc, Fn&& fn) {
  with_float("pool", desc.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    desc.is_max ? fn(tag, nn::MaxPool<kAxes, T>{}) : fn(tag, nn::AvgPool<kAxes, T>{});
  });
}
template <class Fn> void with_pool(const PoolDesc& desc, Fn&& fn) {
  desc.window.axes == 2 ? with_kind<2>(desc, fn) : with_kind<3>(desc, fn);
}

void pool(const void* at, void* const* p, int) {
  const auto& desc = *static_cast<const PoolDesc*>(at);
  with_pool(desc, [&](auto tag, auto kind) {
    using T = typename decltype(tag)::type;
    nn::pool_forward(KernelContext(), dims_of(desc), kind, static_cast<const T*>(p[0]), static_cast<T*>(p[1]));
  });
}

void pool_grad(const void* at, void* const* p, int) {
  const auto& desc = *static_cast<const PoolDesc*>(at);
  with_pool(desc, [&](auto tag, auto kind) {
    using T = typename decltype(tag)::type;
    nn::pool_backward(KernelContext(), dims_of(desc), kind, static_cast<const T*>(p[0]), static_cast<const T*>(p[1]),
                      static_cast<const T*>(p[2]), static_cast<T*>(p[3]));
  });
}

[[maybe_unused]] const bool offered =
    offer_library("pool", {sizeof(PoolDesc), pool}) && offer_library("pool_grad", {sizeof(PoolDesc), pool_grad});

}  // namespace
}  // namespace anabranch::device
