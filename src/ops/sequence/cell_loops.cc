#include "ops/sequence/cell_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/cell_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "ops/kernels/simd_math-inl.h"
#include "ops/sequence/gate_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::sequence::loops {
namespace HWY_NAMESPACE {

// ---- products

constexpr int kVectors = 2;                             // side by side
constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;  // leaves registers for two vectors and a number

template <int R>
HWY_INLINE void some_rows(const float* a, int64_t lda, int64_t k, const float* panel, float* out, int64_t ld_out) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = 0; column < kPanel; column += kVectors * lanes) {
    V sum[R][kVectors];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
    for (int64_t l = 0; l < k; ++l) {
      const float* b = panel + l * kPanel + column;
      const V left = hn::LoadU(d, b), right = hn::LoadU(d, b + lanes);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const V x = hn::Set(d, a[r * lda + l]);
        sum[r][0] = hn::MulAdd(x, left, sum[r][0]);
        sum[r][1] = hn::MulAdd(x, right, sum[r][1]);
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      hn::StoreU(sum[r][0], d, out + r * ld_out + column);
      hn::StoreU(sum[r][1], d, out + r * ld_out + column + lanes);
    }
  }
}

// The last rows, fewer than kRows.
template <int R>
HWY_INLINE void last_rows(int64_t m, const float* a, int64_t lda, int64_t k, const float* panel, float* out,
                          int64_t ld_out) {
  if (m == R) return some_rows<R>(a, lda, k, panel, out, ld_out);
  if constexpr (R > 1) last_rows<R - 1>(m, a, lda, k, panel, out, ld_out);
}

void Product(const float* a, int64_t lda, int64_t m, int64_t k, const float* panel, float* out, int64_t ld_out) {
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) some_rows<kRows>(a + i * lda, lda, k, panel, out + i * ld_out, ld_out);
  if (i < m) last_rows<kRows - 1>(m - i, a + i * lda, lda, k, panel, out + i * ld_out, ld_out);
}

// ---- cells

struct N {  // numbers of one vector
  V v;
  HWY_INLINE N operator-() const { return {hn::Neg(v)}; }
};
HWY_INLINE N operator+(N a, N b) { return {hn::Add(a.v, b.v)}; }
HWY_INLINE N operator-(N a, N b) { return {hn::Sub(a.v, b.v)}; }
HWY_INLINE N operator*(N a, N b) { return {hn::Mul(a.v, b.v)}; }

// Reads and writes at most one vector of units. tile: products, kTileUnits columns per gate.
struct Units {
  Part part;
  const float* tile;
  HWY_INLINE N of(const float* all, int64_t at) const { return {part.of(all ? all + at : nullptr)}; }
  HWY_INLINE N sum(const float* all, int64_t at, int64_t gate) const {
    const N x = of(all, at);
    return tile ? x + N{hn::LoadU(part.d, tile + gate * kTileUnits + part.i)} : x;
  }
  HWY_INLINE N number(float x) const { return {hn::Set(part.d, x)}; }
  HWY_INLINE void put(N x, float* all, int64_t at) const { part.put(x.v, all + at); }
};

HWY_INLINE Act act_of(int32_t number) { return static_cast<Act>(number); }

HWY_INLINE N active(Act act, N x) {
  const D d;
  switch (act) {
    case Act::kSigmoid: return {simd::HWY_NAMESPACE::sigmoid_of(d, x.v)};
    case Act::kTanh: return {simd::HWY_NAMESPACE::tanh_of(d, x.v)};
    case Act::kRelu: return {hn::IfThenZeroElse(hn::Lt(x.v, hn::Zero(d)), x.v)};
    case Act::kIdentity: return x;
  }
  return x;
}

// g f'(x), where y = f(x).
HWY_INLINE N slope(Act act, N y, N g) {
  const D d;
  const N one = {hn::Set(d, 1.0f)};
  switch (act) {
    case Act::kSigmoid: return g * (y * (one - y));
    case Act::kTanh: return g * (one - y * y);
    case Act::kRelu: return {hn::IfThenElseZero(hn::Gt(y.v, hn::Zero(d)), g.v)};
    case Act::kIdentity: return g;
  }
  return g;
}

// Keeps NaN.
HWY_INLINE N clipped(float limit, N x) {
  if (limit <= 0) return x;
  const D d;
  const V low = hn::Set(d, -limit), high = hn::Set(d, limit);
  const V y = hn::IfThenElse(hn::Lt(x.v, low), low, x.v);
  return {hn::IfThenElse(hn::Lt(high, y), high, y)};
}

// No gradient where a value was clipped.
HWY_INLINE N clipped_slope(float limit, N y, N g) {
  return limit > 0 ? N{hn::IfThenZeroElse(hn::Ge(hn::Abs(y.v), hn::Set(D(), limit)), g.v)} : g;
}

#define AB_CELL_FN HWY_INLINE
#include "ops/sequence/cell_formulas-inl.h"
#undef AB_CELL_FN

template <class K>
HWY_INLINE void each_part(const typename K::Rule& rule, const typename K::template Row<float>& row,
                          const UnitPlace& place, int64_t n, const float* tile) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t i = 0; i < n; i += lanes) compute(K(), Units{{D(), i, n - i}, tile}, rule, row, place);
}

#define AB_LOOP_OF(K)                                                                                                 \
  void K##Loop(const K::Rule& rule, const K::Row<float>& row, const UnitPlace& place, int64_t n, const float* tile) { \
    each_part<K>(rule, row, place, n, tile);                                                                          \
  }
AB_CELLS_OF_LOOPS(AB_LOOP_OF)
#undef AB_LOOP_OF

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sequence::loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::sequence::loops {

HWY_EXPORT(Product);
void product(const float* a, int64_t lda, int64_t m, int64_t k, const float* panel, float* out, int64_t ld_out) {
  HWY_DYNAMIC_DISPATCH(Product)(a, lda, m, k, panel, out, ld_out);
}

#define AB_DISPATCH_OF(K)                                                                             \
  HWY_EXPORT(K##Loop);                                                                                \
  template <>                                                                                         \
  void run_units<K>(const K::Rule& rule, const K::Row<float>& row, const UnitPlace& place, int64_t n, \
                    const float* tile) {                                                              \
    HWY_DYNAMIC_DISPATCH(K##Loop)(rule, row, place, n, tile);                                         \
  }
AB_CELLS_OF_LOOPS(AB_DISPATCH_OF)
#undef AB_DISPATCH_OF

}  // namespace anabranch::sequence::loops
#endif  // HWY_ONCE
