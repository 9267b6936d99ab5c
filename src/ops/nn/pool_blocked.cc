#include "ops/nn/pool_blocked.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/pool_blocked.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "ops/nn/blocked.h"
#include "ops/nn/pool_planes.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// fn(d, lane) for the vectors of B channels.
template <int64_t B, class Fn> HWY_INLINE void each_vector(Fn&& fn) {
  const hn::CappedTag<float, B> d;
  for (int64_t l = 0; l < B; l += static_cast<int64_t>(hn::Lanes(d))) fn(d, l);
}

// The loops of pool_planes.h, compiled for this instruction set.
template <class Fn> HWY_INLINE void each_window(const PoolDims& d, Fn&& fn) {
  int64_t output = 0;
  for (int64_t y = 0; y < d.window.out[1]; ++y) {
    const auto rows = d.range(1, y);
    for (int64_t x = 0; x < d.window.out[2]; ++x) fn(output++, Seen{{0, 1}, rows, d.range(2, x)});
  }
}
template <class Fn> HWY_INLINE void each_place(const PoolDims& d, const Seen& seen, Fn&& fn) {
  for (int64_t y = seen.rows.begin; y < seen.rows.end; ++y) {
    for (int64_t x = seen.columns.begin; x < seen.columns.end; ++x) fn(y * d.window.in[2] + x);
  }
}

template <int64_t B> void Max(const PoolDims& dims, const float* x, float* out) {
  each_vector<B>([&](auto d, int64_t l) HWY_ATTR {
    each_window(dims, [&](int64_t o, const Seen& seen) HWY_ATTR {
      auto top = hn::Set(d, std::numeric_limits<float>::lowest());
      each_place(dims, seen, [&](int64_t i) HWY_ATTR {
        const auto value = hn::LoadU(d, x + i * B + l);
        top = hn::IfThenElse(hn::Or(hn::Gt(value, top), hn::IsNaN(value)), value, top);
      });
      hn::StoreU(top, d, out + o * B + l);
    });
  });
}

template <int64_t B> void Mean(const PoolDims& dims, const float* x, float* out) {
  each_vector<B>([&](auto d, int64_t l) HWY_ATTR {
    each_window(dims, [&](int64_t o, const Seen& seen) HWY_ATTR {
      auto sum = hn::Zero(d);
      each_place(dims, seen, [&](int64_t i) HWY_ATTR { sum = hn::Add(sum, hn::LoadU(d, x + i * B + l)); });
      hn::StoreU(hn::Div(sum, hn::Set(d, static_cast<float>(divisor(dims, seen)))), d, out + o * B + l);
    });
  });
}

// The first input of a window that equals its output gets the whole gradient. dx holds zeros.
template <int64_t B>
void MaxGrad(const PoolDims& dims, const float* x, const float* out, const float* dout, float* dx) {
  each_vector<B>([&](auto d, int64_t l) HWY_ATTR {
    each_window(dims, [&](int64_t o, const Seen& seen) HWY_ATTR {
      const auto top = hn::LoadU(d, out + o * B + l);
      auto left = hn::LoadU(d, dout + o * B + l);  // what no input has got yet
      auto open = hn::Eq(top, top);
      each_place(dims, seen, [&](int64_t i) HWY_ATTR {
        const auto takes = hn::And(open, hn::Eq(hn::LoadU(d, x + i * B + l), top));
        float* to = dx + i * B + l;
        const auto had = hn::LoadU(d, to);
        hn::StoreU(hn::IfThenElse(takes, hn::Add(had, left), had), d, to);
        open = hn::AndNot(takes, open);
      });
    });
  });
}

// dx holds zeros.
template <int64_t B> void MeanGrad(const PoolDims& dims, const float* dout, float* dx) {
  each_vector<B>([&](auto d, int64_t l) HWY_ATTR {
    each_window(dims, [&](int64_t o, const Seen& seen) HWY_ATTR {
      const auto share = hn::Div(hn::LoadU(d, dout + o * B + l), hn::Set(d, static_cast<float>(divisor(dims, seen))));
      each_place(dims, seen, [&](int64_t i) HWY_ATTR {
        float* to = dx + i * B + l;
        hn::StoreU(hn::Add(hn::LoadU(d, to), share), d, to);
      });
    });
  });
}

void MaxOf(const PoolDims& d, const float* x, float* out) {
  return channel_block() == 16 ? Max<16>(d, x, out) : Max<8>(d, x, out);
}
void MeanOf(const PoolDims& d, const float* x, float* out) {
  return channel_block() == 16 ? Mean<16>(d, x, out) : Mean<8>(d, x, out);
}
void MaxGradOf(const PoolDims& d, const float* x, const float* out, const float* dout, float* dx) {
  return channel_block() == 16 ? MaxGrad<16>(d, x, out, dout, dx) : MaxGrad<8>(d, x, out, dout, dx);
}
void MeanGradOf(const PoolDims& d, const float* dout, float* dx) {
  return channel_block() == 16 ? MeanGrad<16>(d, dout, dx) : MeanGrad<8>(d, dout, dx);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::nn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::nn {
namespace {
HWY_EXPORT(MaxOf);
HWY_EXPORT(MeanOf);
HWY_EXPORT(MaxGradOf);
HWY_EXPORT(MeanGradOf);

// fn(first input, first output) for each block of channels of each sample.
template <class Fn> void each_block(const KernelContext& c, const PoolDims& d, Fn&& fn) {
  const int64_t width = channel_block(), in = volume(d.window.in) * width, out = volume(d.window.out) * width;
  c.parallel_each(d.batch * d.channels / width, kPoolGrain / std::max<int64_t>(1, in) + 1,
                  [&](int64_t i) { fn(i * in, i * out); });
}

void clear(const PoolDims& d, float* dx) { std::fill_n(dx, volume(d.window.in) * channel_block(), 0.0f); }

}  // namespace

void blocked_max_pool(const KernelContext& c, const PoolDims& d, const float* x, float* out) {
  each_block(c, d, [&](int64_t in, int64_t at) { HWY_DYNAMIC_DISPATCH(MaxOf)(d, x + in, out + at); });
}

void blocked_mean_pool(const KernelContext& c, const PoolDims& d, const float* x, float* out) {
  each_block(c, d, [&](int64_t in, int64_t at) { HWY_DYNAMIC_DISPATCH(MeanOf)(d, x + in, out + at); });
}

void blocked_max_pool_grad(const KernelContext& c, const PoolDims& d, const float* x, const float* out,
                           const float* dout, float* dx) {
  each_block(c, d, [&](int64_t in, int64_t at) {
    clear(d, dx + in);
    HWY_DYNAMIC_DISPATCH(MaxGradOf)(d, x + in, out + at, dout + at, dx + in);
  });
}

void blocked_mean_pool_grad(const KernelContext& c, const PoolDims& d, const float* dout, float* dx) {
  each_block(c, d, [&](int64_t in, int64_t at) {
    clear(d, dx + in);
    HWY_DYNAMIC_DISPATCH(MeanGradOf)(d, dout + at, dx + in);
  });
}

}  // namespace anabranch::nn
#endif
