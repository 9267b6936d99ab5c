// Converts windows of convolutions and pools to the descriptions of library calls, and back.
#pragma once
#include <algorithm>

#include "ops/device/args_library.h"
#include "ops/nn/window.h"

namespace anabranch::device {

inline WindowDesc describe(const nn::Window& w, bool channels_last) {
  WindowDesc d{};
  const auto put = [](const nn::Extents& from, int64_t* to) { std::copy(from.begin(), from.end(), to); };
  put(w.in, d.in);
  put(w.out, d.out);
  put(w.kernel, d.kernel);
  put(w.stride, d.stride);
  put(w.dilation, d.dilation);
  put(w.before, d.before);
  put(w.after, d.after);
  d.axes = w.axes;
  d.channels_last = channels_last;
  return d;
}

inline nn::Window window_of(const WindowDesc& d) {
  nn::Window w;
  const auto get = [](const int64_t* from) { return nn::Extents{from[0], from[1], from[2]}; };
  w.axes = d.axes;
  w.in = get(d.in);
  w.out = get(d.out);
  w.kernel = get(d.kernel);
  w.stride = get(d.stride);
  w.dilation = get(d.dilation);
  w.before = get(d.before);
  w.after = get(d.after);
  return w;
}

}  // namespace anabranch::device
