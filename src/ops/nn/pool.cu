// Largest elements and averages of windows on devices, with their gradients: "pool/max", "pool/avg", "pool_grad/max",
// "pool_grad/avg". Every element of a result is made by one thread, in the order of the CPU.
#include <limits>

#include "ops/device/args_library.h"
#include "ops/device/kernels.h"
#include "ops/nn/pool_windows.h"

namespace anabranch::device {

// Planes of images in either layout: those of one channel, whose elements are step() apart.
struct PoolPlanes {
  PoolWindows w;
  int64_t channels, count;
  bool last, count_padding;

  explicit PoolPlanes(const PoolArgs& a)
      : w(a.window, a.adaptive != 0),
        channels(a.channels),
        count(a.batch * a.channels),
        last(a.window.channels_last != 0),
        count_padding(a.count_padding != 0) {}
  AB_HD int64_t step() const { return last ? channels : 1; }
  // Of element i of a tensor with `elems` elements a plane: its place in its plane, and where that plane begins in a
  // tensor with `others` a plane.
  AB_HD int64_t place(int64_t i, int64_t elems) const { return remainder(last ? quotient(i, channels) : i, elems); }
  AB_HD int64_t begin(int64_t i, int64_t elems, int64_t others) const {
    if (!last) return quotient(i, elems) * others;
    return quotient(i, channels * elems) * channels * others + remainder(i, channels);
  }
};

// What one window sees.
struct PoolRange {
  int64_t begin[3], end[3];

  AB_HD PoolRange(const PoolWindows& w, int64_t o) {
    const int64_t row = quotient(o, w.out[2]), plane = quotient(row, w.out[1]);
    w.range(0, plane, begin, end);
    w.range(1, row - plane * w.out[1], begin + 1, end + 1);
    w.range(2, o - row * w.out[2], begin + 2, end + 2);
  }
  // fn(place in the plane) until it returns true.
  template <class Fn> AB_HD void each_until(const PoolWindows& w, Fn&& fn) const {
    for (int64_t a = begin[0]; a < end[0]; ++a) {
      for (int64_t b = begin[1]; b < end[1]; ++b) {
        for (int64_t c = begin[2]; c < end[2]; ++c) {
          if (fn((a * w.in[1] + b) * w.in[2] + c)) return;
        }
      }
    }
  }
  AB_HD int64_t divisor(const PoolPlanes& p) const {
    if (p.count_padding && !p.w.adaptive) return p.w.kernel[0] * p.w.kernel[1] * p.w.kernel[2];
    const int64_t seen = (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]);
    return seen > 1 ? seen : 1;
  }
};

struct MaxOfWindow {
  template <class T> AB_HD static Compute<T> of(const PoolPlanes& p, const PoolRange& range, const T* x) {
    auto top = static_cast<Compute<T>>(std::numeric_limits<float>::lowest());  // of a window without elements
    range.each_until(p.w, [&](int64_t i) {
      const Compute<T> value = load(x[i * p.step()]);
      if (value > top || value != value) top = value;  // a NaN is the result
      return false;
    });
    return top;
  }
  // What window `o` gives to element `own`: all of it when that is the first that equals the result.
  template <class T>
  AB_HD static Compute<T> share(const PoolPlanes& p, const PoolRange& range, int64_t own, const T* x, const T* out,
                                const T* dout) {
    const Compute<T> top = load(*out);
    if (!(load(x[own * p.step()]) == top)) return Compute<T>{0};
    int64_t first = -1;
    range.each_until(p.w, [&](int64_t i) {
      const bool equal = load(x[i * p.step()]) == top;
      if (equal) first = i;
      return equal || i >= own;
    });
    return first == own ? load(*dout) : Compute<T>{0};
  }
};

struct MeanOfWindow {
  template <class T> AB_HD static Compute<T> of(const PoolPlanes& p, const PoolRange& range, const T* x) {
    Compute<T> sum = 0;
    range.each_until(p.w, [&](int64_t i) {
      sum += load(x[i * p.step()]);
      return false;
    });
    return sum / static_cast<Compute<T>>(range.divisor(p));
  }
  template <class T>
  AB_HD static Compute<T> share(const PoolPlanes& p, const PoolRange& range, int64_t, const T*, const T*,
                                const T* dout) {
    return load(*dout) / static_cast<Compute<T>>(range.divisor(p));
  }
};

template <class Kind> struct Pool {
  using Args = PoolArgs;
  template <class T> struct Body {
    PoolPlanes p;
    const T* x;
    T* out;
    AB_HD void operator()(int64_t i) const {
      const PoolRange range(p.w, p.place(i, p.w.outs()));
      store(out + i, Kind::template of<T>(p, range, x + p.begin(i, p.w.outs(), p.w.ins())));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const PoolPlanes p(a);
    return each(launch, p.count * p.w.outs(), Body<T>{p, a.x.get<T>(), a.result.get<T>()});
  }
};

template <class Kind> struct PoolGrad {
  using Args = PoolArgs;
  template <class T> struct Body {
    PoolPlanes p;
    const T *x, *out, *dout;
    T* dx;
    AB_HD void operator()(int64_t i) const {
      const PoolWindows& w = p.w;
      const int64_t own = p.place(i, w.ins()), from = p.begin(i, w.ins(), w.ins()), to = p.begin(i, w.ins(), w.outs());
      const int64_t row = quotient(own, w.in[2]), plane = quotient(row, w.in[1]);
      const int64_t at[3] = {plane, row - plane * w.in[1], own - row * w.in[2]};
      int64_t first[3], last[3];
      for (int d = 0; d < 3; ++d) w.windows_of(d, at[d], first + d, last + d);
      Compute<T> sum = 0;
      for (int64_t a = first[0]; a <= last[0]; ++a) {
        for (int64_t b = first[1]; b <= last[1]; ++b) {
          for (int64_t c = first[2]; c <= last[2]; ++c) sum += of(at, own, from, to, (a * w.out[1] + b) * w.out[2] + c);
        }
      }
      store(dx + i, sum);
    }
    AB_HD Compute<T> of(const int64_t (&at)[3], int64_t own, int64_t from, int64_t to, int64_t o) const {
      const PoolRange range(p.w, o);
      for (int d = 0; d < 3; ++d) {
        if (at[d] < range.begin[d] || at[d] >= range.end[d]) return 0;
      }
      const int64_t k = to + o * p.step();
      return Kind::template share<T>(p, range, own, x + from, out + k, dout + k);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const PoolPlanes p(a);
    const Body<T> body{p, a.x.get<T>(), a.out.get<T>(), a.dout.get<T>(), a.result.get<T>()};
    return each(launch, p.count * p.w.ins(), body);
  }
};

AB_KERNEL("pool/max", Pool<MaxOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool/avg", Pool<MeanOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool_grad/max", PoolGrad<MaxOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool_grad/avg", PoolGrad<MeanOfWindow>, float, double, half, bfloat16);

}  // namespace anabranch::device
