// Joins tensors along an axis, and splits them, on the CPU and on devices.
#pragma once
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

// Joins all inputs of a slot into one tensor.
template <class On> void join(const On& on, const KernelContext& c, In xs, int axis, Tensor* out) {
  int64_t whole = 0, at = 0;
  for (int i = 0; i < xs.count; ++i) whole += width_at(c.at(xs, i), axis);
  const int64_t outer = c.at(xs, 0).shape().numel(0, axis);
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
  int64_t at = 0;
  for (int i = 0; i < outs.count; ++i) {
    const int64_t w = width(i);
    AB_CHECK(at + w <= whole || outer == 0, ShapeMismatch, "sections must fit into the tensor, got {} elements of {}",
             at + w, whole);
    if (c.needs(outs, i)) copy_part(on, c, outer, w, from, at, whole, &c.at(outs, i), 0, w);
    at += w;
  }
}

}  // namespace anabranch::tensor
