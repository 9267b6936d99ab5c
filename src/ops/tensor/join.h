// Joins tensors along an axis, and splits them, on the CPU and on devices.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/device/launch_tensor.h"

namespace anabranch::tensor {

using device::OnDevice, device::OnHost;

// Elements of one slice: the axis and everything after it.
inline int64_t width_at(const Tensor& t, int axis) { return t.shape().numel(axis, t.shape().rank()); }

// Copies `count` slices of `width` elements (part) from or to a whole whose slices are `whole_width` wide.
template <class On>
void copy_part(const On& on, const KernelContext& c, int64_t count, int64_t width, const Tensor& from, int64_t from_at,
               int64_t from_step, Tensor* to, int64_t to_at, int64_t to_step) {
  NdLoop<2> loop;
  loop.add_axis(count, {to_step, from_step});
  loop.add_axis(width, {1, 1});
  on.strided(c, loop, from, from_at, to, to_at);
}

namespace join_detail {

// `fixed` bytes a row, or `bytes` if it is 0: a call of memcpy would cost more than copying a short row.
template <size_t fixed>
void copy_rows(const char* from, size_t from_step, char* to, size_t to_step, size_t bytes, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, from += from_step, to += to_step) std::memcpy(to, from, fixed ? fixed : bytes);
}

inline void copy_rows(const char* from, size_t from_step, char* to, size_t to_step, size_t bytes, int64_t rows) {
  switch (bytes) {
    case 4: return copy_rows<4>(from, from_step, to, to_step, bytes, rows);
    case 8: return copy_rows<8>(from, from_step, to, to_step, bytes, rows);
    case 16: return copy_rows<16>(from, from_step, to, to_step, bytes, rows);
    case 32: return copy_rows<32>(from, from_step, to, to_step, bytes, rows);
    case 64: return copy_rows<64>(from, from_step, to, to_step, bytes, rows);
    case 128: return copy_rows<128>(from, from_step, to, to_step, bytes, rows);
    default: return copy_rows<0>(from, from_step, to, to_step, bytes, rows);
  }
}

// fn(first, last) for blocks of rows that stay in the cache while all sections of them are copied, on idle workers.
// With many narrow sections, copying one section after another would touch each page of the whole once per section.
template <class Fn> void each_block(const KernelContext& c, int64_t rows, size_t row_bytes, Fn&& fn) {
  constexpr int64_t kBlockBytes = 131072;
  const int64_t bytes = std::max<int64_t>(1, static_cast<int64_t>(row_bytes));
  const int64_t block = std::max<int64_t>(1, kBlockBytes / bytes);
  c.parallel_for(rows, std::max<int64_t>(1, kCheapGrain * 4 / bytes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += block) fn(row, std::min(end, row + block));
  });
}

inline void join_rows(const KernelContext& c, In xs, int axis, int64_t rows, int64_t whole, Tensor* out) {
  const size_t size = dtype_size(out->dtype()), step = static_cast<size_t>(whole) * size;
  auto* target = static_cast<char*>(out->mutable_raw());
  each_block(c, rows, step, [&](int64_t first, int64_t last) {
    char* to = target + static_cast<size_t>(first) * step;
    for (int i = 0; i < xs.count; ++i) {
      const Tensor& x = c.at(xs, i);
      const size_t bytes = static_cast<size_t>(width_at(x, axis)) * size;
      copy_rows(static_cast<const char*>(x.raw()) + static_cast<size_t>(first) * bytes, bytes, to, step, bytes,
                last - first);
      to += bytes;
    }
  });
}

template <class Width>
void cut_rows(const KernelContext& c, const Tensor& from, int64_t rows, int64_t whole, Out outs, const Width& width) {
  const size_t size = dtype_size(from.dtype()), step = static_cast<size_t>(whole) * size;
  const auto* source = static_cast<const char*>(from.raw());
  each_block(c, rows, step, [&](int64_t first, int64_t last) {
    const char* at = source + static_cast<size_t>(first) * step;
    for (int i = 0; i < outs.count; ++i) {
      const size_t bytes = static_cast<size_t>(width(i)) * size;
      if (c.needs(outs, i)) {
        auto* to = static_cast<char*>(c.at(outs, i).mutable_raw()) + static_cast<size_t>(first) * bytes;
        copy_rows(at, step, to, bytes, bytes, last - first);
      }
      at += bytes;
    }
  });
}

}  // namespace join_detail

// Joins all inputs of a slot into one tensor.
template <class On> void join(const On& on, const KernelContext& c, In xs, int axis, Tensor* out) {
  int64_t whole = 0, at = 0;
  for (int i = 0; i < xs.count; ++i) whole += width_at(c.at(xs, i), axis);
  const int64_t outer = c.at(xs, 0).shape().numel(0, axis);
  if constexpr (std::is_same_v<On, OnHost>) {
    if (outer > 1) return join_detail::join_rows(c, xs, axis, outer, whole, out);
  }
  for (int i = 0; i < xs.count; ++i) {
    const int64_t width = width_at(c.at(xs, i), axis);
    copy_part(on, c, outer, width, c.at(xs, i), 0, width, out, at, whole);
    at += width;
  }
}

// The inverse: sections of one tensor to the requested outputs. width(i): of section i.
template <class On, class Width>
void cut(const On& on, const KernelContext& c, const Tensor& from, int64_t outer, Out outs, Width width) {
  const int64_t whole = outer ? from.numel() / outer : 0;
  const bool in_rows = std::is_same_v<On, OnHost> && outer > 1;
  int64_t at = 0;
  for (int i = 0; i < outs.count; ++i) {
    const int64_t w = width(i);
    AB_CHECK(at + w <= whole || outer == 0, ShapeMismatch, "sections must fit into the tensor, got {} elements of {}",
             at + w, whole);
    if (!in_rows && c.needs(outs, i)) copy_part(on, c, outer, w, from, at, whole, &c.at(outs, i), 0, w);
    at += w;
  }
  if (in_rows) join_detail::cut_rows(c, from, outer, whole, outs, width);
}

}  // namespace anabranch::tensor
