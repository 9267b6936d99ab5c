#include "ops/sequence/step_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/step_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "ops/sequence/gate_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::sequence::loops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

// ---- gates

// Keeps NaN.
HWY_INLINE V clipped(float limit, V x) {
  if (limit <= 0) return x;
  const D d;
  const V low = hn::Set(d, -limit), high = hn::Set(d, limit);
  x = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Lt(high, x), high, x);
}

void Forward(const CellRule& rule, int64_t unit, int64_t n, const CellForward& row) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const Part at{d, i, n - i};
    const auto sum = [&](int gate) HWY_ATTR {
      const V x = at.of(row.gates[gate]);
      return row.tile ? hn::Add(x, hn::LoadU(d, row.tile + gate * kUnits + i)) : x;
    };
    V candidate = sum(0), in = sum(1), forget = sum(2), out = sum(3);
    const V before = at.of(row.before);
    if (rule.peep_input && row.before) {
      in = hn::Add(in, times(at.of(rule.peep_input + unit), before));
      forget = hn::Add(forget, times(at.of(rule.peep_forget + unit), before));
    }
    candidate = active(rule.candidate, candidate);
    in = active(rule.gate, in);
    forget = active(rule.gate, forget);
    const V kept = row.before ? times(forget, before) : hn::Zero(d);
    const V cell = clipped(rule.clip, hn::Add(times(in, candidate), kept));
    if (rule.peep_output) out = hn::Add(out, times(at.of(rule.peep_output + unit), cell));
    out = active(rule.gate, out);
    at.put(candidate, row.gates[0]);
    at.put(in, row.gates[1]);
    at.put(forget, row.gates[2]);
    at.put(out, row.gates[3]);
    at.put(cell, row.cell);
    at.put(times(active(rule.cell, cell), out), row.hidden);
  }
}

void Backward(const CellRule& rule, int64_t unit, int64_t n, const CellBackward& row) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const Part at{d, i, n - i};
    const V candidate = at.of(row.gates[0]), in = at.of(row.gates[1]), forget = at.of(row.gates[2]);
    const V out = at.of(row.gates[3]), cell = at.of(row.cell), before = at.of(row.before);
    V dhidden = at.of(row.dhidden);
    if (row.tile) dhidden = hn::Add(dhidden, at.of(row.tile));
    const V shown = active(rule.cell, cell);
    const V dout = slope(rule.gate, out, times(dhidden, shown));
    V dcell = hn::Add(at.of(row.dcell), slope(rule.cell, shown, times(dhidden, out)));
    if (rule.peep_output) dcell = hn::Add(dcell, times(dout, at.of(rule.peep_output + unit)));
    if (rule.clip > 0) {
      dcell = hn::IfThenZeroElse(hn::Ge(hn::Abs(cell), hn::Set(d, rule.clip)), dcell);
    }
    const V dcandidate = slope(rule.candidate, candidate, times(dcell, in));
    const V din = slope(rule.gate, in, times(dcell, candidate));
    const V dforget = row.before ? slope(rule.gate, forget, times(dcell, before)) : hn::Zero(d);
    V dbefore = hn::Add(at.of(row.dbefore), times(dcell, forget));
    if (rule.peep_input) {
      dbefore = hn::Add(dbefore, times(din, at.of(rule.peep_input + unit)));
      dbefore = hn::Add(dbefore, times(dforget, at.of(rule.peep_forget + unit)));
    }
    at.put(dcandidate, row.dgates[0]);
    at.put(din, row.dgates[1]);
    at.put(dforget, row.dgates[2]);
    at.put(dout, row.dgates[3]);
    at.put(dbefore, row.dbefore);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sequence::loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::sequence::loops {

HWY_EXPORT(Product);
HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

void product(const float* a, int64_t lda, int64_t m, int64_t k, const float* panel, float* out, int64_t ld_out) {
  HWY_DYNAMIC_DISPATCH(Product)(a, lda, m, k, panel, out, ld_out);
}
void cell_forward(const CellRule& rule, int64_t unit, int64_t n, const CellForward& row) {
  HWY_DYNAMIC_DISPATCH(Forward)(rule, unit, n, row);
}
void cell_backward(const CellRule& rule, int64_t unit, int64_t n, const CellBackward& row) {
  HWY_DYNAMIC_DISPATCH(Backward)(rule, unit, n, row);
}

}  // namespace anabranch::sequence::loops
#endif  // HWY_ONCE
