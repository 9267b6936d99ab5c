// Deformed windows of one image: the sampling position of each tap, and the columns made from them.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "ops/kernels/gemm.h"
#include "ops/vision/extents.h"

namespace anabranch::vision {

// Extents; in pairs, 0 is the height and 1 the width. `parts` are the groups of channels with separate offsets.
struct Deformed {
  int64_t channels = 0, made = 0, groups = 1, parts = 1;
  std::array<int64_t, 2> in{}, out{kUnknown, kUnknown}, kernel{}, stride{}, padding{}, dilation{};

  int64_t in_plane() const { return in[0] * in[1]; }
  int64_t places() const { return out[0] * out[1]; }
  int64_t taps() const { return product(kernel[0], kernel[1]); }
  int64_t depth() const { return channels / groups * taps(); }  // rows of the columns of a group
  int64_t part_channels() const { return channels / parts; }

  // One product per group. Matrices are filters [made, depth], columns [depth, places] and images [made, places].
  int64_t filters() const { return made / groups * depth(); }
  int64_t columns() const { return depth() * places(); }
  int64_t images() const { return made / groups * places(); }
  GemmDims forward() const {
    return {.m = made / groups,
            .n = places(),
            .k = depth(),
            .batch = groups,
            .batch_stride_a = filters(),
            .batch_stride_b = columns(),
            .batch_stride_c = images()};
  }
  GemmDims to_filters() const {
    return {.m = made / groups,
            .n = depth(),
            .k = places(),
            .trans_b = true,
            .batch = groups,
            .batch_stride_a = images(),
            .batch_stride_b = columns(),
            .batch_stride_c = filters()};
  }
  GemmDims to_columns() const {
    return {.m = depth(),
            .n = places(),
            .k = made / groups,
            .trans_a = true,
            .batch = groups,
            .batch_stride_a = filters(),
            .batch_stride_b = images(),
            .batch_stride_c = columns()};
  }
};

// The value of a tap: four pixels with their weights, and the derivatives of their sum downwards and to the right.
// Pixels outside of the image have weight 0.
template <class T> struct Reading {
  std::array<int64_t, 4> at{};
  std::array<T, 4> weight{}, down{}, right{};
};

template <class T> Reading<T> read_between(const Deformed& d, T y, T x) {
  Reading<T> r;
  if (!(y > T(-1) && y < static_cast<T>(d.in[0]) && x > T(-1) && x < static_cast<T>(d.in[1]))) return r;
  const T top = std::floor(y), left = std::floor(x);
  for (size_t k = 0; k < 4; ++k) {
    const bool below = k / 2, to_right = k % 2;
    const int64_t row = static_cast<int64_t>(top) + below, column = static_cast<int64_t>(left) + to_right;
    if (row < 0 || row >= d.in[0] || column < 0 || column >= d.in[1]) continue;
    const T wy = below ? y - top : top + 1 - y, wx = to_right ? x - left : left + 1 - x;
    r.at[k] = row * d.in[1] + column;
    r.weight[k] = wy * wx;
    r.down[k] = below ? wx : -wx;
    r.right[k] = to_right ? wy : -wy;
  }
  return r;
}

// The sampling positions of the taps of one image.
template <class T> struct Places {
  Deformed d;
  const T *offset, *mask;  // mask: null, 1 everywhere

  // Row `line` of [parts, taps], place p.
  Reading<T> at(int64_t line, int64_t p) const {
    const int64_t tap = line % d.taps(), all = d.places();
    const int64_t y = p / d.out[1] * d.stride[0] - d.padding[0] + tap / d.kernel[1] * d.dilation[0];
    const int64_t x = p % d.out[1] * d.stride[1] - d.padding[1] + tap % d.kernel[1] * d.dilation[1];
    return read_between(d, static_cast<T>(y) + offset[2 * line * all + p],
                        static_cast<T>(x) + offset[(2 * line + 1) * all + p]);
  }
  T factor(int64_t line, int64_t p) const { return mask ? mask[line * d.places() + p] : T(1); }
  int64_t lines() const { return d.parts * d.taps(); }
  // The first channel of a line, and the row of the columns for a channel.
  int64_t first(int64_t line) const { return line / d.taps() * d.part_channels(); }
  int64_t row(int64_t line, int64_t channel) const { return channel * d.taps() + line % d.taps(); }
};

// The readings of a tap at a block of places, for loops over the places of one channel: these read a channel's pixels
// from the cache, and run in vectors.
template <class T> struct Block {
  static constexpr int64_t kPlaces = 128;
  using Row = std::array<T, kPlaces>;
  int64_t size = 0;
  std::array<std::array<int64_t, kPlaces>, 4> at;
  std::array<Row, 4> weight, down, right;
  Row factor;  // the mask

  void read(const Places<T>& places, int64_t line, int64_t first) {
    size = std::min(kPlaces, places.d.places() - first);
    for (int64_t p = 0; p < size; ++p) {
      const Reading<T> r = places.at(line, first + p);
      const auto i = static_cast<size_t>(p);
      for (size_t q = 0; q < 4; ++q) {
        at[q][i] = r.at[q], weight[q][i] = r.weight[q], down[q][i] = r.down[q], right[q][i] = r.right[q];
      }
      factor[i] = places.factor(line, first + p);
    }
  }
  T value(const T* plane, const std::array<Row, 4>& by, size_t i) const {
    return plane[at[0][i]] * by[0][i] + plane[at[1][i]] * by[1][i] + plane[at[2][i]] * by[2][i] +
           plane[at[3][i]] * by[3][i];
  }
};

inline constexpr int64_t kTapGrain = 4096;  // pixels read per task

// fn(line, first, block) for all blocks of the lines [begin, end).
template <class T, class Fn> void each_block(const Places<T>& places, int64_t begin, int64_t end, Fn&& fn) {
  Block<T> block;
  for (int64_t line = begin; line < end; ++line) {
    for (int64_t first = 0; first < places.d.places(); first += Block<T>::kPlaces) {
      block.read(places, line, first);
      fn(line, first, static_cast<const Block<T>&>(block));
    }
  }
}

// columns[c * taps + k, p] = the value of tap k in channel c at place p, times its mask.
template <class T> void read_columns(const KernelContext& c, const Places<T>& places, const T* x, T* columns) {
  const Deformed& d = places.d;
  const int64_t all = d.places();
  const auto read = [&](int64_t line, int64_t first, const Block<T>& block) {
    for (int64_t k = places.first(line); k < places.first(line) + d.part_channels(); ++k) {
      const T* plane = x + k * d.in_plane();
      T* to = columns + places.row(line, k) * all + first;
      for (size_t i = 0; i < static_cast<size_t>(block.size); ++i) {
        to[i] = block.value(plane, block.weight, i) * block.factor[i];
      }
    }
  };
  c.parallel_for(places.lines(), kTapGrain / (all * d.part_channels() + 1) + 1,
                 [&](int64_t begin, int64_t end) { each_block(places, begin, end, read); });
}

// Adds the gradients of the taps that read each pixel to dx; one task owns a channel.
template <class T> void share_columns(const KernelContext& c, const Places<T>& places, const T* dcolumns, T* dx) {
  const Deformed& d = places.d;
  const int64_t all = d.places();
  c.parallel_for(d.channels, kTapGrain / (all * d.taps() + 1) + 1, [&](int64_t begin, int64_t end) {
    const int64_t part = begin / d.part_channels(), past = (end - 1) / d.part_channels() + 1;
    each_block(places, part * d.taps(), past * d.taps(), [&](int64_t line, int64_t first, const Block<T>& block) {
      const int64_t till = std::min(end, places.first(line) + d.part_channels());
      for (int64_t k = std::max(begin, places.first(line)); k < till; ++k) {
        const T* from = dcolumns + places.row(line, k) * all + first;
        T* plane = dx + k * d.in_plane();
        for (size_t i = 0; i < static_cast<size_t>(block.size); ++i) {
          const T by = from[i] * block.factor[i];
          for (size_t q = 0; q < 4; ++q) plane[block.at[q][i]] += by * block.weight[q][i];
        }
      }
    });
  });
}

// The gradients of offsets and masks; each is null if not requested.
template <class T>
void move_columns(const KernelContext& c, const Places<T>& places, const T* x, const T* dcolumns, T* doffset,
                  T* dmask) {
  const Deformed& d = places.d;
  const int64_t all = d.places();
  const auto move = [&](int64_t line, int64_t first, const Block<T>& block) {
    typename Block<T>::Row down{}, right{}, value{};
    const auto size = static_cast<size_t>(block.size);
    for (int64_t k = places.first(line); k < places.first(line) + d.part_channels(); ++k) {
      const T *from = dcolumns + places.row(line, k) * all + first, *plane = x + k * d.in_plane();
      for (size_t i = 0; i < size; ++i) {
        down[i] += from[i] * block.value(plane, block.down, i);
        right[i] += from[i] * block.value(plane, block.right, i);
        value[i] += from[i] * block.value(plane, block.weight, i);
      }
    }
    for (size_t i = 0; i < size && doffset; ++i) {
      doffset[2 * line * all + first + static_cast<int64_t>(i)] = down[i] * block.factor[i];
      doffset[(2 * line + 1) * all + first + static_cast<int64_t>(i)] = right[i] * block.factor[i];
    }
    if (dmask) std::copy_n(value.begin(), block.size, dmask + line * all + first);
  };
  c.parallel_for(places.lines(), kTapGrain / (all * d.part_channels() + 1) + 1,
                 [&](int64_t begin, int64_t end) { each_block(places, begin, end, move); });
}

}  // namespace anabranch::vision
