#include "ops/sparse/row_loops.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "core/row_locks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse/row_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "sparse/rule_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::sparse {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kAhead = 16;  // rows between prefetching a line and reading it
constexpr size_t kLine = 64;

template <int kCount> using Count = std::integral_constant<int, kCount>;

// A row that starts inside a cache line ends in another one.
template <class T> HWY_INLINE void prefetch_row(const T* row, int64_t width) {
  const auto* p = reinterpret_cast<const char*>(row);
  const auto* end = p + static_cast<size_t>(width) * sizeof(T);
  for (; p < end; p += kLine) __builtin_prefetch(p);
  __builtin_prefetch(end - 1);
}

// Without native masked loads, Highway's require aligned memory; there no mask exceeds the row (each_vector_of), so a
// plain load suffices.
template <class D, class T = hn::TFromD<D>> HWY_INLINE hn::Vec<D> load(hn::Mask<D> mask, D d, const T* p) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(mask, d, p);
#else
  (void)mask;
  return hn::LoadU(d, p);
#endif
}

// Calls fn(d, mask, count, j) for the elements of a row from j on, `count` vectors of d's width at a time: kMost,
// then 1. Rows are short: with native masked loads and stores the last vector is masked; where it would touch memory
// after the row, the tail is processed one by one.
template <int kMost, class D, class Fn, class T = hn::TFromD<D>>
HWY_INLINE void each_vectors_of(D d, int64_t width, Fn&& fn) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::FirstN(d, static_cast<size_t>(lanes));
  int64_t j = 0;
  if constexpr (kMost > 1) {
    for (; j + kMost * lanes <= width; j += kMost * lanes) fn(d, all, Count<kMost>(), j);
  }
  for (; j + lanes <= width; j += lanes) fn(d, all, Count<1>(), j);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  if (j < width) fn(d, hn::FirstN(d, static_cast<size_t>(width - j)), Count<1>(), j);
#else
  const hn::CappedTag<T, 1> one;
  for (; j < width; ++j) fn(one, hn::FirstN(one, 1), Count<1>(), j);
#endif
}

// In vectors no wider than the row: the cost of divisions and square roots grows with the width.
template <class T, class Fn> HWY_INLINE void each_vectors(int64_t width, Fn&& fn) {
  if (width == 1) {
    const hn::CappedTag<T, 1> one;
    fn(one, hn::FirstN(one, 1), Count<1>(), 0);
  } else if (width <= 8) {  // NOLINT(bugprone-branch-clone): the same as above on a machine without vectors
    each_vectors_of<1>(hn::CappedTag<T, 8>(), width, fn);
  } else {
    each_vectors_of<4>(hn::ScalableTag<T>(), width, fn);
  }
}

// The same for fn(d, mask, j), one vector at a time.
template <class T, class Fn> HWY_INLINE void each_vector(int64_t width, Fn&& fn) {
  each_vectors<T>(width, [&](auto d, auto mask, auto count, int64_t j) HWY_ATTR {
    for (int i = 0; i < count; ++i) fn(d, mask, j + i * static_cast<int64_t>(hn::Lanes(d)));
  });
}

template <class T> HWY_INLINE void copy_row(const T* from, int64_t width, T* to) {
  each_vector<T>(width, [&](auto d, auto mask, int64_t j)
                            HWY_ATTR { hn::BlendedStore(load(mask, d, from + j), mask, d, to + j); });
}

template <class T> HWY_INLINE const T* row_of(const GatherPart<T>& p, int64_t id) {
  return id == p.padding ? p.zeros : p.table + id * p.width;
}

template <class T> HWY_INLINE void copy_id(const GatherPart<T>& p, int64_t id, T* to) {
  const RowLocks::Hold hold(p.table, id, p.shared && id != p.padding);
  copy_row(row_of(p, id), p.width, to);
}

// Only the sum, row after row, because a row can be locked only once at a time.
template <class T> HWY_INLINE void add_shared_rows(const GatherPart<T>& p, int64_t from, int64_t to, T* out) {
  copy_id(p, p.ids[from], out);
  for (int64_t i = from + 1; i < to; ++i) {
    const RowLocks::Hold hold(p.table, p.ids[i], p.ids[i] != p.padding);
    const T* row = row_of(p, p.ids[i]);
    each_vector<T>(p.width, [&](auto d, auto mask, int64_t j) HWY_ATTR {
      hn::BlendedStore(hn::Add(load(mask, d, out + j), load(mask, d, row + j)), mask, d, out + j);
    });
  }
}

template <class T> HWY_INLINE void pool_row(const GatherPart<T>& p, int64_t from, int64_t to, T* out) {
  if (from == to) {
    for (int64_t j = 0; j < p.width; ++j) out[j] = p.empty;
    return;
  }
  if (p.shared) add_shared_rows(p, from, to, out);
  const T length = static_cast<T>(to - from), over = p.pool == Pool::kSqrt ? std::sqrt(length) : length;
  each_vectors<T>(p.width, [&](auto d, auto mask, auto count, int64_t j) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> sums[count];
    const T* row = p.shared ? out : row_of(p, p.ids[from]);
    for (int v = 0; v < count; ++v) sums[v] = load(mask, d, row + j + v * lanes);
    for (int64_t i = p.shared ? to : from + 1; i < to; ++i) {
      row = row_of(p, p.ids[i]);
      for (int v = 0; v < count; ++v) sums[v] = hn::Add(sums[v], load(mask, d, row + j + v * lanes));
    }
    for (int v = 0; v < count; ++v) {
      if (p.pool != Pool::kSum) sums[v] = hn::Div(sums[v], hn::Set(d, over));
      hn::BlendedStore(sums[v], mask, d, out + j + v * lanes);
    }
  });
}

template <class T> HWY_INLINE void prefetch_part(const GatherPart<T>& p, int64_t r) {
  if (!p.ids) return;
  const int64_t from = p.offsets ? p.offsets[r] : r * p.per_row;
  const int64_t to = p.offsets ? std::min(p.offsets[r + 1], from + kAhead) : from + p.per_row;
  for (int64_t i = from; i < to; ++i) prefetch_row(row_of(p, p.ids[i]), p.width);
}

template <class T>
void GatherParts(const GatherPart<T>* parts, int64_t count, int64_t begin, int64_t end, T* out, int64_t stride) {
  const int64_t ahead = std::max<int64_t>(1, kAhead / std::max<int64_t>(1, count));
  for (int64_t r = begin; r < end; ++r) {
    if (r + ahead < end) {
      for (int64_t k = 0; k < count; ++k) prefetch_part(parts[k], r + ahead);
    }
    for (int64_t k = 0; k < count; ++k) {
      const GatherPart<T>& p = parts[k];
      T* to = out + r * stride + p.column;
      if (!p.ids) {
        copy_row(p.table + r * p.width, p.width, to);
      } else if (p.offsets) {
        pool_row(p, p.offsets[r], p.offsets[r + 1], to);
      } else {
        for (int64_t q = 0; q < p.per_row; ++q) copy_id(p, p.ids[r * p.per_row + q], to + q * p.width);
      }
    }
  }
}
void GatherFloat(const GatherPart<float>* p, int64_t n, int64_t begin, int64_t end, float* out, int64_t stride) {
  GatherParts(p, n, begin, end, out, stride);
}
void GatherDouble(const GatherPart<double>* p, int64_t n, int64_t begin, int64_t end, double* out, int64_t stride) {
  GatherParts(p, n, begin, end, out, stride);
}

// Several vectors of a gradient, so that its chain, whose every link waits for the one before, is followed only once.
template <int kCount, class D, class M, class T = hn::TFromD<D>>
HWY_INLINE void gradient(D d, M mask, const RowUpdate<T>& u, int64_t row, int64_t j, hn::Vec<D>* sums) {
  if (u.sums) {
    const T* from = u.sums + row * u.width + j;
    for (int v = 0; v < kCount; ++v) sums[v] = load(mask, d, from + v * static_cast<int64_t>(hn::Lanes(d)));
    return;
  }
  const int32_t at = u.first[row];
  const auto one = [&](int32_t k, int v) HWY_ATTR {
    auto g = load(mask, d, u.grads[k] + j + v * static_cast<int64_t>(hn::Lanes(d)));
    if (u.factors) g = hn::Add(hn::Zero(d), hn::Mul(g, hn::Set(d, u.factors[k])));  // as a product of matrices
    return u.divisors ? hn::Div(g, hn::Set(d, u.divisors[k])) : g;
  };
  for (int v = 0; v < kCount; ++v) sums[v] = one(at, v);
  for (int32_t k = u.next[at]; k >= 0; k = u.next[k]) {
    for (int v = 0; v < kCount; ++v) sums[v] = hn::Add(sums[v], one(k, v));
  }
}

// Readers of one-element rows take no lock, but must see whole elements.
template <class D, class M, class V, class T = hn::TFromD<D>> HWY_INLINE void store(D d, M mask, V v, T* to) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    std::atomic_ref<T>(*to).store(hn::GetLane(v), std::memory_order_relaxed);
  } else {
    hn::BlendedStore(v, mask, d, to);
  }
}

// step(d, mask, gradient, element) for every vector of every row.
template <int kStates, class T, class Step> HWY_INLINE void each_row(const RowUpdate<T>& u, Step&& step) {
  for (int64_t i = 0; i < u.count; ++i) {
    if (!u.sums && i + kAhead < u.count) {  // the sums were made while rows were prefetched
      const int64_t at = u.rows[i + kAhead] * u.stride;
      prefetch_row(u.param + at, u.width);
      for (int s = 0; s < kStates; ++s) prefetch_row(u.state[s] + at, u.width);
    }
    const int64_t at = u.rows[i] * u.stride;
    const RowLocks::Hold hold(u.param, u.rows[i], u.shared);
    each_vectors<T>(u.width, [&](auto d, auto mask, auto count, int64_t j) HWY_ATTR {
      hn::Vec<decltype(d)> grads[count];
      gradient<count>(d, mask, u, i, j, grads);
      for (int v = 0; v < count; ++v) step(d, mask, grads[v], at + j + v * static_cast<int64_t>(hn::Lanes(d)));
    });
  }
}

template <class T, class R, size_t... S>
HWY_INLINE void update_by(const RowUpdate<T>& u, const R& rule, std::index_sequence<S...>) {
  each_row<sizeof...(S)>(u, [=, p = u.param, states = u.state](auto d, auto mask, auto g, int64_t at) HWY_ATTR {
    using V = rules::HWY_NAMESPACE::Wide<decltype(d)>;
    V value = load(mask, d, p + at);
    [&](auto... state) HWY_ATTR {
      rules::HWY_NAMESPACE::step(rule, V(g), value, state...);
      (hn::BlendedStore(state.v, mask, d, states[S] + at), ...);
    }(V(load(mask, d, states[S] + at))...);
    store(d, mask, value.v, p + at);
  });
}

template <class T> void UpdateRows(const RowUpdate<T>& given) {
  const RowUpdate<T> u = given;  // no store to a row can change it
  u.with_rule([&](const auto& rule) HWY_ATTR {
    update_by(u, rule, std::make_index_sequence<std::remove_cvref_t<decltype(rule)>::kStates>());
  });
}
void UpdateFloat(const RowUpdate<float>& u) { UpdateRows(u); }
void UpdateDouble(const RowUpdate<double>& u) { UpdateRows(u); }

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sparse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::sparse {

HWY_EXPORT(GatherFloat);
HWY_EXPORT(GatherDouble);
HWY_EXPORT(UpdateFloat);
HWY_EXPORT(UpdateDouble);

template <>
void gather_parts(const GatherPart<float>* parts, int64_t count, int64_t begin, int64_t end, float* out,
                  int64_t stride) {
  HWY_DYNAMIC_DISPATCH(GatherFloat)(parts, count, begin, end, out, stride);
}
template <>
void gather_parts(const GatherPart<double>* parts, int64_t count, int64_t begin, int64_t end, double* out,
                  int64_t stride) {
  HWY_DYNAMIC_DISPATCH(GatherDouble)(parts, count, begin, end, out, stride);
}
template <> void update_rows(const RowUpdate<float>& u) { HWY_DYNAMIC_DISPATCH(UpdateFloat)(u); }
template <> void update_rows(const RowUpdate<double>& u) { HWY_DYNAMIC_DISPATCH(UpdateDouble)(u); }

}  // namespace anabranch::sparse
#endif  // HWY_ONCE
