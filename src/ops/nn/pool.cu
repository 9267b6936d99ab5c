// Largest elements and averages of windows on devices, with their gradients: "pool/max", "pool/avg", "pool_grad/max",
// "pool_grad/avg". Every element of a result is made by one thread, in the order of the CPU.
#include <limits>

#include "ops/device/args_library.h"
#include "ops/device/pack.h"
#include "ops/nn/pool_windows.h"

namespace anabranch::device {

// Planes of images in either layout: those of one channel, whose elements are step() apart. With the channels last a
// plane may be of `pack` neighbouring channels, which lie in memory as one element of that width.
struct PoolPlanes {
  PoolWindows w;
  int64_t channels, count;
  bool last, count_padding;

  PoolPlanes(const PoolArgs& a, int64_t pack)
      : w(a.window, a.adaptive != 0),
        channels(a.channels / pack),
        count(a.batch * channels),
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

// Where an element stands in a plane of these extents.
struct PoolPlace {
  int64_t at[3];
  AB_HD PoolPlace(int64_t i, const int64_t (&extent)[3]) {
    const int64_t row = quotient(i, extent[2]), plane = quotient(row, extent[1]);
    at[0] = plane, at[1] = row - plane * extent[1], at[2] = i - row * extent[2];
  }
  AB_HD PoolPlace(int64_t a, int64_t b, int64_t c) : at{a, b, c} {}
};

// What one window sees.
struct PoolRange {
  int64_t begin[3], end[3];

  AB_HD PoolRange(const PoolWindows& w, const PoolPlace& window) {
    for (int d = 0; d < 3; ++d) w.range(d, window.at[d], begin + d, end + d);
  }
  AB_HD bool holds(const PoolPlace& p) const {
    for (int d = 0; d < 3; ++d) {
      if (p.at[d] < begin[d] || p.at[d] >= end[d]) return false;
    }
    return true;
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

// Numbers of neighbouring channels, which a thread has at once.
template <class T, int kCount> struct PoolNumbers {
  Compute<T> at[kCount];
  AB_HD explicit PoolNumbers(Compute<T> x) {
    for (Compute<T>& number : at) number = x;
  }
  AB_HD explicit PoolNumbers(Pack<T, kCount> pack) {
    for (int e = 0; e < kCount; ++e) at[e] = load(pack.at[e]);
  }
  AB_HD void leave(Pack<T, kCount>* to) const {
    Pack<T, kCount> pack;
    for (int e = 0; e < kCount; ++e) store(pack.at + e, at[e]);
    *to = pack;
  }
};

struct MaxOfWindow {
  template <class T, int kCount>
  AB_HD static PoolNumbers<T, kCount> of(const PoolPlanes& p, const PoolRange& range, const Pack<T, kCount>* x) {
    // Of a window without elements.
    PoolNumbers<T, kCount> top(static_cast<Compute<T>>(std::numeric_limits<float>::lowest()));
    range.each_until(p.w, [&](int64_t i) {
      const PoolNumbers<T, kCount> value(x[i * p.step()]);
      for (int e = 0; e < kCount; ++e) {
        if (value.at[e] > top.at[e] || value.at[e] != value.at[e]) top.at[e] = value.at[e];  // a NaN is the result
      }
      return false;
    });
    return top;
  }
  // Adds what a window gives to element `own`: all of it when that is the first that equals the result.
  template <class T, int kCount>
  AB_HD static void share(const PoolPlanes& p, const PoolRange& range, int64_t own, const Pack<T, kCount>* x,
                          const Pack<T, kCount>& out, const Pack<T, kCount>& dout, PoolNumbers<T, kCount>* sum) {
    const PoolNumbers<T, kCount> top(out), mine(x[own * p.step()]);
    bool first[kCount], any = false;
    for (int e = 0; e < kCount; ++e) any |= first[e] = mine.at[e] == top.at[e];
    if (!any) return;
    range.each_until(p.w, [&](int64_t i) {
      if (i >= own) return true;
      const PoolNumbers<T, kCount> value(x[i * p.step()]);
      for (int e = 0; e < kCount; ++e) first[e] = first[e] && !(value.at[e] == top.at[e]);
      return false;
    });
    const PoolNumbers<T, kCount> d(dout);
    for (int e = 0; e < kCount; ++e) sum->at[e] += first[e] ? d.at[e] : Compute<T>{0};
  }
};

struct MeanOfWindow {
  template <class T, int kCount>
  AB_HD static PoolNumbers<T, kCount> of(const PoolPlanes& p, const PoolRange& range, const Pack<T, kCount>* x) {
    PoolNumbers<T, kCount> sum(Compute<T>{0});
    range.each_until(p.w, [&](int64_t i) {
      const PoolNumbers<T, kCount> value(x[i * p.step()]);
      for (int e = 0; e < kCount; ++e) sum.at[e] += value.at[e];
      return false;
    });
    for (Compute<T>& number : sum.at) number = number / static_cast<Compute<T>>(range.divisor(p));
    return sum;
  }
  template <class T, int kCount>
  AB_HD static void share(const PoolPlanes& p, const PoolRange& range, int64_t, const Pack<T, kCount>*,
                          const Pack<T, kCount>&, const Pack<T, kCount>& dout, PoolNumbers<T, kCount>* sum) {
    const PoolNumbers<T, kCount> d(dout);
    for (int e = 0; e < kCount; ++e) sum->at[e] += d.at[e] / static_cast<Compute<T>>(range.divisor(p));
  }
};

// fn(the number of channels that a thread takes at once): of 16 bytes where all operands have them side by side.
template <class T, class Fn> int by_channels(const PoolArgs& a, const Fn& fn) {
  constexpr int kCount = 16 / sizeof(T);
  const auto fits = [](const auto& operand) { return packed<Pack<T, kCount>>(operand.template get<T>()); };
  if (a.window.channels_last && a.channels % kCount == 0 && fits(a.x) && fits(a.out) && fits(a.dout) && fits(a.result))
    return fn(std::integral_constant<int, kCount>{});
  return fn(std::integral_constant<int, 1>{});
}

template <class Kind> struct Pool {
  using Args = PoolArgs;
  template <class T, int kCount> struct Body {
    PoolPlanes p;
    const Pack<T, kCount>* x;
    Pack<T, kCount>* out;
    AB_HD void operator()(int64_t i) const {
      const PoolRange range(p.w, PoolPlace(p.place(i, p.w.outs()), p.w.out));
      Kind::template of<T, kCount>(p, range, x + p.begin(i, p.w.outs(), p.w.ins())).leave(out + i);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return by_channels<T>(a, [&](auto count) {
      using P = Pack<T, decltype(count)::value>;
      const PoolPlanes p(a, decltype(count)::value);
      return each(launch, p.count * p.w.outs(), Body<T, decltype(count)::value>{p, a.x.get<P>(), a.result.get<P>()});
    });
  }
};

template <class Kind> struct PoolGrad {
  using Args = PoolArgs;
  template <class T, int kCount> struct Body {
    PoolPlanes p;
    const Pack<T, kCount>*x, *out, *dout;
    Pack<T, kCount>* dx;
    AB_HD void operator()(int64_t i) const {
      const PoolWindows& w = p.w;
      const int64_t own = p.place(i, w.ins()), from = p.begin(i, w.ins(), w.ins()), to = p.begin(i, w.ins(), w.outs());
      const PoolPlace place(own, w.in);
      int64_t first[3], last[3];
      for (int d = 0; d < 3; ++d) w.windows_of(d, place.at[d], first + d, last + d);
      PoolNumbers<T, kCount> sum(Compute<T>{0});
      for (int64_t a = first[0]; a <= last[0]; ++a) {
        for (int64_t b = first[1]; b <= last[1]; ++b) {
          for (int64_t c = first[2]; c <= last[2]; ++c) {
            const PoolRange range(w, PoolPlace(a, b, c));
            const int64_t k = to + ((a * w.out[1] + b) * w.out[2] + c) * p.step();
            if (range.holds(place)) Kind::template share<T, kCount>(p, range, own, x + from, out[k], dout[k], &sum);
          }
        }
      }
      sum.leave(dx + i);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return by_channels<T>(a, [&](auto count) {
      using P = Pack<T, decltype(count)::value>;
      const PoolPlanes p(a, decltype(count)::value);
      return each(launch, p.count * p.w.ins(),
                  Body<T, decltype(count)::value>{p, a.x.get<P>(), a.out.get<P>(), a.dout.get<P>(), a.result.get<P>()});
    });
  }
};

AB_KERNEL("pool/max", Pool<MaxOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool/avg", Pool<MeanOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool_grad/max", PoolGrad<MaxOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool_grad/avg", PoolGrad<MeanOfWindow>, float, double, half, bfloat16);

}  // namespace anabranch::device
