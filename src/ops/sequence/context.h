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
};

// fn(row, tap, source row) for every pair inside one sequence; source -1: outside of it.
template <class Fn> void each_tap(const Offsets& o, const Context& context, int64_t sequence, Fn&& fn) {
  const int64_t first = o[static_cast<size_t>(sequence)], last = o[static_cast<size_t>(sequence) + 1];
  for (int64_t row = first; row < last; ++row) {
    for (int64_t tap = 0; tap < context.length; ++tap) {
      const int64_t source = row + context.start + tap;
      fn(row, tap, source >= first && source < last ? source : -1);
    }
  }
}

// The rows around each row side by side, [rows, length * width]; zeros stand for rows outside of the sequence.
template <class T>
void gather_context(KernelContext& c, const Offsets& o, const Context& context, const T* x, int64_t width, T* columns) {
  const int64_t n = count(o), rows = std::max<int64_t>(1, o.back());
  c.parallel_for(n, kContextGrain * n / (rows * context.length * std::max<int64_t>(1, width)) + 1,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t s = begin; s < end; ++s) {
                     each_tap(o, context, s, [&](int64_t row, int64_t tap, int64_t source) {
                       T* to = columns + (row * context.length + tap) * width;
                       if (source < 0) {
                         std::fill(to, to + width, T{0});
                       } else {
                         std::copy(x + source * width, x + (source + 1) * width, to);
                       }
                     });
                   }
                 });
}

}  // namespace anabranch::sequence
