// Loops of batch normalization over a part of a tensor of float32 or float64, in the widest vectors of the machine.
// Operands per channel are pointers to the number of the part's first channel. Single-threaded.
//
// Sums have the same bits on every machine, however a tensor is cut into parts of whole channels. A channel adds up
// sixteen partial sums in each run of its elements, like sums.h, and the runs in double; elements that are alone
// (channels last) are added in double. Loops that write elements may write to an array that they read.
#pragma once
#include <cstdint>

namespace anabranch::nn::channel_loops {

// `count` rows of `channels` runs of `width` elements; `stride` elements from one row to the next.
struct Part {
  int64_t count, stride, channels, width;
  bool last() const { return width == 1; }
};

// The gradient of a result, masked by the derivative of relu if the result y is given.
template <class T> struct Gradient {
  const T* dy;
  const T* y = nullptr;
  Gradient from(int64_t at) const { return {dy + at, y ? y + at : nullptr}; }
  T operator[](int64_t i) const { return y ? dy[i] * static_cast<T>(y[i] > 0) : dy[i]; }
};

// Coefficients of a gradient with respect to x.
template <class T> struct Slopes { const T *factor, *mean_g, *slope, *center; };

template <class T> struct Loops {
  // Adds to `sums`, per channel: elements, and squares of x - center.
  void (*add_elements)(const Part& part, const T* x, double* sums);
  void (*add_squares)(const Part& part, const T* x, const T* center, double* sums);
  // Adds to sum_g and sum_gx: g, and g (x - center) inv.
  void (*add_products)(const Part& part, Gradient<T> g, const T* x, const T* center, const T* inv, double* sum_g,
                       double* sum_gx);
  // y = x factor + offset, with relu its positive part
  void (*affine)(const Part& part, const T* x, const T* factor, const T* offset, bool relu, T* y);
  // dx = factor (g - mean_g - (x - center) slope)
  void (*combine)(const Part& part, Gradient<T> g, const T* x, const Slopes<T>& by, T* dx);
};

// The loops for float or double on this machine.
template <class T> const Loops<T>& loops();
template <> const Loops<float>& loops<float>();
template <> const Loops<double>& loops<double>();

}  // namespace anabranch::nn::channel_loops
