// The first elements of lines in an order, and their indices. Ties go to the lower index.
#pragma once
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/kernels/sort_keys.h"
#include "ops/tensor/lines.h"

namespace anabranch::tensor {

// Sorts NaN after all numbers, so that the order is a strict weak one for any data.
template <class T> bool before(T a, T b, bool descending) {
  if (a != a || b != b) return a == a && b != b;
  return descending ? a > b : a < b;
}

template <class T> struct Placed {
  T value;
  int64_t place;
};

// The first k elements of a line in the requested order, in a buffer of the calling thread that only grows.
template <class T>
const std::vector<Placed<T>>& ranked(const T* line, int64_t step, int64_t extent, int64_t k, bool descending) {
  thread_local std::vector<Placed<T>> order;
  order.resize(static_cast<size_t>(extent));
  for (int64_t i = 0; i < extent; ++i) order[static_cast<size_t>(i)] = {line[i * step], i};
  const auto first = [descending](const Placed<T>& a, const Placed<T>& b) {
    return before(a.value, b.value, descending) || (!before(b.value, a.value, descending) && a.place < b.place);
  };
  if (k > extent / 16) {  // a heap of this size costs more than partial quicksort
    if (k < extent) std::nth_element(order.begin(), order.begin() + k, order.end(), first);
    std::sort(order.begin(), order.begin() + k, first);
  } else {
    std::partial_sort(order.begin(), order.begin() + k, order.end(), first);
  }
  return order;
}

inline constexpr int64_t kFew = 16;

// Vectorizable; false if a number is NaN.
inline bool any_above(const float* x, int64_t n, float limit) {
  int above = 0;
  for (int64_t i = 0; i < n; ++i) above |= x[i] > limit;
  return above != 0;
}

// The k <= kFew largest of n contiguous numbers, ties by index. Most blocks contain nothing larger than the smallest of
// those found so far.
inline void few_largest(const float* x, int64_t n, int64_t k, float* values, int64_t* places) {
  constexpr int64_t kBlock = 64;
  int64_t found = 0;
  const auto insert = [&](float value, int64_t place) {
    if (found == k && !before(value, values[k - 1], true)) return;
    int64_t at = found < k ? found++ : k - 1;
    for (; at > 0 && before(value, values[at - 1], true); --at) {
      values[at] = values[at - 1];
      places[at] = places[at - 1];
    }
    values[at] = value;
    places[at] = place;
  };
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t end = std::min(n, i + kBlock);
    const bool full = found == k && values[k - 1] == values[k - 1];  // all are numbers
    if (full && !any_above(x + i, end - i, values[k - 1])) continue;
    for (int64_t j = i; j < end; ++j) insert(x[j], j);
  }
}

// Values and indices of the first k elements of each line.
template <class T>
void select(const KernelContext& c, const Lines& l, int64_t k, bool descending, const T* x, T* out, int64_t* indices) {
  const Lines to = [&] {
    Lines t = l;
    t.extent = k;
    return t;
  }();
  each_line(c, l, [=](int64_t line) {
    const T* from = x + l.begin(line);
    if constexpr (std::is_same_v<T, float>) {
      if (descending && l.inner == 1 && k <= kFew && k < l.extent) {
        return few_largest(from, l.extent, k, out + to.begin(line), indices + to.begin(line));
      }
      if (k > l.extent / 16 && l.extent <= std::numeric_limits<uint32_t>::max()) {
        const auto& sorted = sorted_places(from, l.inner, l.extent, descending);
        for (int64_t j = 0; j < k; ++j) {
          const auto place = static_cast<int64_t>(static_cast<uint32_t>(sorted[static_cast<size_t>(j)]));
          out[to.begin(line) + j * l.inner] = from[place * l.inner];
          indices[to.begin(line) + j * l.inner] = place;
        }
        return;
      }
    }
    const auto& order = ranked(from, l.inner, l.extent, k, descending);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t at = to.begin(line) + j * l.inner;
      out[at] = order[static_cast<size_t>(j)].value;
      indices[at] = order[static_cast<size_t>(j)].place;
    }
  });
}

}  // namespace anabranch::tensor
