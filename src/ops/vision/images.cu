// Windows of images as columns, and resized images, on devices: "unfold", "resample", with "_grad".
#include "ops/device/args_vision.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

struct UnfoldDims {
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], before[2], channels;
  explicit UnfoldDims(const UnfoldArgs& a) : channels(a.channels) {
    for (int d = 0; d < 2; ++d) {
      in[d] = a.in[d], out[d] = a.out[d], kernel[d] = a.kernel[d];
      stride[d] = a.stride[d], dilation[d] = a.dilation[d], before[d] = a.before[d];
    }
  }
  AB_HD int64_t ins() const { return in[0] * in[1]; }
  AB_HD int64_t outs() const { return kernel[0] * kernel[1] * out[0] * out[1]; }
  AB_HD int64_t taps() const { return kernel[0] * kernel[1]; }
  AB_HD int64_t windows() const { return out[0] * out[1]; }
  // The element of y for a tap of a window of a plane.
  AB_HD int64_t place(int64_t plane, int64_t tap, int64_t window) const {
    if (channels == 0) return (plane * taps() + tap) * windows() + window;
    return ((plane / channels * windows() + window) * channels + plane % channels) * taps() + tap;
  }
  // The output of axis d that reads element i by this tap; -1: none.
  AB_HD int64_t output(int d, int64_t i, int64_t tap) const {
    const int64_t at = i + before[d] - tap * dilation[d];
    return at >= 0 && at % stride[d] == 0 && at / stride[d] < out[d] ? at / stride[d] : -1;
  }
};

struct Unfold {
  using Args = UnfoldArgs;
  template <class T> struct Body {
    UnfoldDims d;
    const T* x;
    T* y;
    AB_HD void operator()(int64_t i) const {
      if (d.channels == 0) return fill(i, i / d.outs(), i / d.windows() % d.taps(), i % d.windows());
      const int64_t row = i / d.taps() / d.channels, channel = i / d.taps() % d.channels;
      fill(i, row / d.windows() * d.channels + channel, i % d.taps(), row % d.windows());
    }
    AB_HD void fill(int64_t i, int64_t plane, int64_t tap, int64_t window) const {
      const int64_t column = window % d.out[1], row = window / d.out[1];
      const int64_t across = tap % d.kernel[1], down = tap / d.kernel[1];
      const int64_t r = row * d.stride[0] + down * d.dilation[0] - d.before[0];
      const int64_t c = column * d.stride[1] + across * d.dilation[1] - d.before[1];
      const bool inside = r >= 0 && r < d.in[0] && c >= 0 && c < d.in[1];
      store(y + i, inside ? load(x[plane * d.ins() + r * d.in[1] + c]) : Compute<T>(0));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const UnfoldDims d(a);
    return each(launch, a.planes * d.outs(), Body<T>{d, a.x.get<T>(), a.y.get<T>()});
  }
};

struct UnfoldGrad {
  using Args = UnfoldArgs;
  template <class T> struct Body {
    UnfoldDims d;
    const T* dout;
    T* dx;
    AB_HD void operator()(int64_t i) const {
      const int64_t plane = i / d.ins(), r = i / d.in[1] % d.in[0], c = i % d.in[1];
      Compute<T> sum = 0;
      for (int64_t down = 0; down < d.kernel[0]; ++down) {
        const int64_t row = d.output(0, r, down);
        for (int64_t across = 0; row >= 0 && across < d.kernel[1]; ++across) {
          const int64_t column = d.output(1, c, across);
          if (column < 0) continue;
          const int64_t tap = down * d.kernel[1] + across;
          sum += load(dout[d.place(plane, tap, row * d.out[1] + column)]);
        }
      }
      store(dx + i, sum);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const UnfoldDims d(a);
    return each(launch, a.planes * d.ins(), Body<T>{d, a.x.get<T>(), a.y.get<T>()});
  }
};

struct Tables {  // of one axis, with the pointers resolved
  const int32_t* from;
  const double* weight;
  const int32_t *starts, *uses;
  int64_t in, out;
  int32_t taps;
  explicit Tables(const ResampleAxis& a)
      : from(a.from.get<int32_t>()),
        weight(a.weight.get<double>()),
        starts(a.starts.get<int32_t>()),
        uses(a.uses.get<int32_t>()),
        in(a.in),
        out(a.out),
        taps(a.taps) {}
};

struct Resample {
  using Args = ResampleArgs;
  template <class T> struct Body {
    Tables depth, rows, cols;
    const T* x;
    T* y;
    int64_t inner;
    AB_HD void operator()(int64_t i) const {
      const int64_t own = i % inner, c = i / inner % cols.out, r = i / inner / cols.out % rows.out;
      const int64_t d = i / inner / cols.out / rows.out % depth.out, n = i / inner / cols.out / rows.out / depth.out;
      Compute<T> sum = 0;
      for (int k = 0; k < cols.taps; ++k) {
        for (int a = 0; a < depth.taps; ++a) {
          for (int b = 0; b < rows.taps; ++b) {
            const int64_t p = d * depth.taps + a, q = r * rows.taps + b, s = c * cols.taps + k;
            const int64_t at = ((n * depth.in + depth.from[p]) * rows.in + rows.from[q]) * cols.in + cols.from[s];
            sum += load(x[at * inner + own]) * static_cast<Compute<T>>(depth.weight[p] * rows.weight[q]) *
                   static_cast<Compute<T>>(cols.weight[s]);
          }
        }
      }
      store(y + i, sum);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Tables depth(a.axes[0]), rows(a.axes[1]), cols(a.axes[2]);
    return each(launch, a.outer * depth.out * rows.out * cols.out * a.inner,
                Body<T>{depth, rows, cols, a.x.get<T>(), a.y.get<T>(), a.inner});
  }
};

struct ResampleGrad {
  using Args = ResampleArgs;
  template <class T> struct Body {
    Tables depth, rows, cols;
    const T* dout;
    T* dx;
    int64_t inner;
    AB_HD void operator()(int64_t i) const {
      const int64_t own = i % inner, c = i / inner % cols.in, r = i / inner / cols.in % rows.in;
      const int64_t d = i / inner / cols.in / rows.in % depth.in, n = i / inner / cols.in / rows.in / depth.in;
      double sum = 0;
      for (int32_t a = depth.starts[d]; a < depth.starts[d + 1]; ++a) {
        for (int32_t b = rows.starts[r]; b < rows.starts[r + 1]; ++b) {
          const int32_t p = depth.uses[a], q = rows.uses[b];
          const int64_t line = ((n * depth.out + p / depth.taps) * rows.out + q / rows.taps) * cols.out;
          for (int32_t k = cols.starts[c]; k < cols.starts[c + 1]; ++k) {
            const int32_t s = cols.uses[k];
            const double weight = depth.weight[p] * rows.weight[q] * cols.weight[s];
            sum += static_cast<double>(load(dout[(line + s / cols.taps) * inner + own])) * weight;
          }
        }
      }
      store(dx + i, static_cast<Compute<T>>(sum));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Tables depth(a.axes[0]), rows(a.axes[1]), cols(a.axes[2]);
    return each(launch, a.outer * depth.in * rows.in * cols.in * a.inner,
                Body<T>{depth, rows, cols, a.x.get<T>(), a.y.get<T>(), a.inner});
  }
};

AB_KERNEL("unfold", Unfold, float, double, half, bfloat16);
AB_KERNEL("unfold_grad", UnfoldGrad, float, double, half, bfloat16);
AB_KERNEL("resample", Resample, float, double, half, bfloat16);
AB_KERNEL("resample_grad", ResampleGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
