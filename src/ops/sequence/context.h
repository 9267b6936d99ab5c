// The rows around each row of a sequence, for convolutions along it.
#pragma once
#include <algorithm>

#include "ops/sequence/offsets.h"

namespace anabranch::sequence {

constexpr int64_t kContextGrain = 4096;

struct Context {
  int64_t length, start;
  explicit Context(const ir::Op& op)
      : length(op.attr<int32_t>("contextLength")), start(op.attr<int32_t>("contextStart")) {}

  // Number of rows that may be read before the first row of a sequence and after its last.
  int64_t before() const { return std::max<int64_t>(0, -start); }
  int64_t after() const { return std::max<int64_t>(0, start + length - 1); }
};

// Calls fn(row, tap, source row) for every pair of one sequence; outside of it the source is -1 - p, where p is a row
// of padding: first the rows before a sequence, then those after it.
template <class Fn> void each_tap(const Offsets& o, const Context& context, int64_t sequence, Fn&& fn) {
  const int64_t first = o[static_cast<size_t>(sequence)], last = o[static_cast<size_t>(sequence) + 1];
  for (int64_t row = first; row < last; ++row) {
    for (int64_t tap = 0; tap < context.length; ++tap) {
      const int64_t source = row + context.start + tap;
      if (source < first) {
        fn(row, tap, -1 - (context.before() + source - first));
      } else if (source >= last) {
        fn(row, tap, -1 - (context.before() + source - last));
      } else {
        fn(row, tap, source);
      }
    }
  }
}

// n numbers, or zeros if the source is null; returns the end. A loop, because calls for a few numbers cost more.
template <class T> T* put(const T* from, int64_t n, T* to) {
  if (!from) {
    for (int64_t i = 0; i < n; ++i) to[i] = T{0};
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
  return to + n;
}

// The rows around each row side by side, [rows, length * width]. Outside of its sequence: the rows of `padding`, or
// zeros.
template <class T>
void gather_context(KernelContext& c, const Offsets& o, const Context& context, const T* x, int64_t width, T* columns,
                    const T* padding = nullptr) {
  const int64_t n = count(o), rows = std::max<int64_t>(1, o.back());
  const int64_t grain = kContextGrain * n / (rows * context.length * std::max<int64_t>(1, width)) + 1;
  c.parallel_each(n, grain, [&](int64_t s) {
    const int64_t first = o[static_cast<size_t>(s)], last = o[static_cast<size_t>(s) + 1];
    for (int64_t row = first; row < last; ++row) {
      const int64_t from = row + context.start, to = from + context.length;
      // Rows `head` to `tail` are in the sequence, and contiguous.
      const int64_t head = std::clamp(first, from, to), tail = std::clamp(last, head, to);
      T* target = columns + row * context.length * width;
      const T *before = padding, *after = padding;
      if (padding) {
        before += (context.before() + from - first) * width;
        after += (context.before() + tail - last) * width;
      }
      target = put(before, (head - from) * width, target);
      target = put(x + head * width, (tail - head) * width, target);
      put(after, (to - tail) * width, target);
    }
  });
}

}  // namespace anabranch::sequence
