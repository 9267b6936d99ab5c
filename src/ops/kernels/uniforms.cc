#include "ops/kernels/uniforms.h"

#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/uniforms.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<uint32_t>;
using V = hn::Vec<D>;

// Upper and lower halves of the products of all lanes with one number.
HWY_INLINE void multiply(V x, uint32_t by, V* high, V* low) {
  const D d;
  const hn::Repartition<uint64_t, D> wide;
  const V factor = hn::Set(d, by);
  const auto even = hn::MulEven(x, factor),
             odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), factor);
  *low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  *high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

// store(i, x0, x1, x2, x3): the four words of the blocks first + i and on, one in each lane.
template <class Store> HWY_INLINE void each_block(const PhiloxKey& key, uint64_t first, Store&& store) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN uint32_t low[kUniformBlocks], high[kUniformBlocks];
  for (int64_t i = 0; i < kUniformBlocks; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    low[i] = static_cast<uint32_t>(index);
    high[i] = static_cast<uint32_t>(index >> 32);
  }
  for (int64_t i = 0; i < kUniformBlocks; i += lanes) {
    V x0 = hn::Load(d, low + i), x1 = hn::Load(d, high + i), x2 = hn::Set(d, key.step), x3 = hn::Set(d, key.replica);
    uint32_t k0 = static_cast<uint32_t>(key.key), k1 = static_cast<uint32_t>(key.key >> 32);
    for (int round = 0; round < 10; ++round) {
      V high0, low0, high1, low1;
      multiply(x0, 0xD2511F53u, &high0, &low0);
      multiply(x2, 0xCD9E8D57u, &high1, &low1);
      x0 = hn::Xor(hn::Xor(high1, x1), hn::Set(d, k0));
      x2 = hn::Xor(hn::Xor(high0, x3), hn::Set(d, k1));
      x1 = low1;
      x3 = low0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    store(i, x0, x1, x2, x3);
  }
}

void UniformBlocks(const PhiloxKey& key, uint64_t first, float* out) {
  const hn::RebindToFloat<D> df;
  const auto scale = hn::Set(df, 0x1p-24f);
  const auto unit = [&](V bits) HWY_ATTR {
    const hn::RebindToSigned<D> di;
    return hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(bits))), scale);
  };
  each_block(key, first, [&](int64_t i, V x0, V x1, V x2, V x3) HWY_ATTR {
    hn::StoreInterleaved4(unit(x0), unit(x1), unit(x2), unit(x3), df, out + 4 * i);
  });
}

// The numbers of the blocks' first and second halves. Converts the bits as signed integers, which all machines support:
// 2^31 less, added afterwards. All steps are exact.
HWY_INLINE void halves(const PhiloxKey& key, uint64_t first, double* u, double* v) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<int32_t, decltype(dd)> di;
  HWY_ALIGN int32_t words[4][kUniformBlocks];
  each_block(key, first, [&](int64_t i, V x0, V x1, V x2, V x3) HWY_ATTR {
    const D d;
    const hn::RebindToSigned<D> ds;
    const V sign = hn::Set(d, 0x80000000u);
    hn::Store(hn::BitCast(ds, hn::Xor(x0, sign)), ds, words[0] + i);
    hn::Store(hn::BitCast(ds, hn::ShiftRight<11>(x1)), ds, words[1] + i);
    hn::Store(hn::BitCast(ds, hn::Xor(x2, sign)), ds, words[2] + i);
    hn::Store(hn::BitCast(ds, hn::ShiftRight<11>(x3)), ds, words[3] + i);
  });
  const auto number = [&](const int32_t* high, const int32_t* low) HWY_ATTR {
    const auto upper = hn::Add(hn::PromoteTo(dd, hn::Load(di, high)), hn::Set(dd, 0x1p31));
    return hn::Add(hn::Mul(upper, hn::Set(dd, 0x1p-32)),
                   hn::Mul(hn::PromoteTo(dd, hn::Load(di, low)), hn::Set(dd, 0x1p-53)));
  };
  for (int64_t i = 0; i < kUniformBlocks; i += static_cast<int64_t>(hn::Lanes(dd))) {
    hn::Store(number(words[0] + i, words[1] + i), dd, u + i);
    hn::Store(number(words[2] + i, words[3] + i), dd, v + i);
  }
}

void Uniform53Blocks(const PhiloxKey& key, uint64_t first, double* out) {
  const hn::ScalableTag<double> d;
  HWY_ALIGN double u[kUniformBlocks], v[kUniformBlocks];
  halves(key, first, u, v);
  for (int64_t i = 0; i < kUniformBlocks; i += static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreInterleaved2(hn::Load(d, u + i), hn::Load(d, v + i), d, out + 2 * i);
  }
}

// 1 - u is exact. Logarithm, root, sine and products together are off by less than 2^-48 of the radius, and so are
// those of the C library; the margin covers both. Around 0 it extends across 0.
void NearNormalBlocks(const PhiloxKey& key, uint64_t first, double* z, double* margin) {
  const hn::ScalableTag<double> d;
  HWY_ALIGN double u[kUniformBlocks], v[kUniformBlocks];
  halves(key, first, u, v);
  for (int64_t i = 0; i < kUniformBlocks; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto logs = hn::Log(d, hn::Sub(hn::Set(d, 1.0), hn::Load(d, u + i)));
    const auto radius = hn::Sqrt(hn::Mul(logs, hn::Set(d, -2.0)));
    const auto angle = hn::Mul(hn::Load(d, v + i), hn::Set(d, 2.0 * std::numbers::pi));
    const auto off = hn::Add(hn::Mul(radius, hn::Set(d, 0x1p-44)), hn::Set(d, 0x1p-200));
    hn::StoreInterleaved2(hn::Mul(radius, hn::Cos(d, angle)), hn::Mul(radius, hn::Sin(d, angle)), d, z + 2 * i);
    hn::StoreInterleaved2(off, off, d, margin + 2 * i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch {
HWY_EXPORT(UniformBlocks);
HWY_EXPORT(Uniform53Blocks);
HWY_EXPORT(NearNormalBlocks);
void uniform_blocks(const PhiloxKey& key, uint64_t first, float* out) {
  HWY_DYNAMIC_DISPATCH(UniformBlocks)(key, first, out);
}
void uniform53_blocks(const PhiloxKey& key, uint64_t first, double* out) {
  HWY_DYNAMIC_DISPATCH(Uniform53Blocks)(key, first, out);
}
void near_normal_blocks(const PhiloxKey& key, uint64_t first, double* z, double* margin) {
  HWY_DYNAMIC_DISPATCH(NearNormalBlocks)(key, first, z, margin);
}
}  // namespace anabranch
#endif
