#include "ops/kernels/uniforms.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/uniforms.cc"
#include "hwy/foreach_target.h"
// foreach_target.h stands first: it includes this file once for every instruction set
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

void UniformBlocks(const PhiloxKey& key, uint64_t first, float* out) {
  const D d;
  const hn::RebindToFloat<D> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN uint32_t low[kUniformBlocks], high[kUniformBlocks];
  for (int64_t i = 0; i < kUniformBlocks; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    low[i] = static_cast<uint32_t>(index);
    high[i] = static_cast<uint32_t>(index >> 32);
  }
  const auto scale = hn::Set(df, 0x1p-24f);
  const auto unit = [&](V bits) HWY_ATTR {
    const hn::RebindToSigned<D> di;
    return hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(bits))), scale);
  };
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
    hn::StoreInterleaved4(unit(x0), unit(x1), unit(x2), unit(x3), df, out + 4 * i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch {
HWY_EXPORT(UniformBlocks);
void uniform_blocks(const PhiloxKey& key, uint64_t first, float* out) {
  HWY_DYNAMIC_DISPATCH(UniformBlocks)(key, first, out);
}
}  // namespace anabranch
#endif
