// Maxima and averages of windows on devices, with their gradients: "pool/max", "pool/avg", "pool_grad/max",
// "pool_grad/avg". One thread computes each element of a result, in the order of the CPU.
#include <limits>

#include "ops/device/args_library.h"
#include "ops/device/pack.h"
#include "ops/nn/pool_windows.h"

namespace anabranch::device {

// Planes of images in either layout: those of one channel, whose elements are step() apart. With channels last, a plane
// may combine `pack` neighboring channels, stored as one element of that width.
template <class I> struct PoolPlanes {
  PoolWindowsOf<I> w;
  I channels, count;
  bool last, count_padding;

  PoolPlanes(const PoolArgs& a, int pack)
      : w(a.window, a.adaptive != 0),
        channels(static_cast<I>(a.channels / pack)),
        count(static_cast<I>(a.batch) * channels),
        last(a.window.channels_last != 0),
        count_padding(a.count_padding != 0) {}
  AB_HD I step() const { return last ? channels : 1; }
  // For element i of a tensor with `elems` elements per plane: its index in its plane, and where that plane starts in a
  // tensor with `others` per plane.
  AB_HD I place(I i, I elems) const { return remainder(last ? quotient(i, channels) : i, elems); }
  AB_HD I begin(I i, I elems, I others) const {
    if (!last) return quotient(i, elems) * others;
    return quotient(i, channels * elems) * channels * others + remainder(i, channels);
  }
};

// The position of an element in a plane of these extents.
template <class I> struct PoolPlace {
  I at[3];
  AB_HD PoolPlace(I i, const I (&extent)[3]) {
    const I row = quotient(i, extent[2]), plane = quotient(row, extent[1]);
    at[0] = plane, at[1] = row - plane * extent[1], at[2] = i - row * extent[2];
  }
  AB_HD PoolPlace(I a, I b, I c) : at{a, b, c} {}
};

// The inputs of one window.
template <class I> struct PoolRange {
  I begin[3], end[3];

  AB_HD PoolRange(const PoolWindowsOf<I>& w, const PoolPlace<I>& window) {
    for (int d = 0; d < 3; ++d) w.range(d, window.at[d], begin + d, end + d);
  }
  AB_HD bool holds(const PoolPlace<I>& p) const {
    for (int d = 0; d < 3; ++d) {
      if (p.at[d] < begin[d] || p.at[d] >= end[d]) return false;
    }
    return true;
  }
  // Calls fn(index in the plane) until it returns true.
  template <class Fn> AB_HD void each_until(const PoolWindowsOf<I>& w, Fn&& fn) const {
    for (I a = begin[0]; a < end[0]; ++a) {
      for (I b = begin[1]; b < end[1]; ++b) {
        for (I c = begin[2]; c < end[2]; ++c) {
          if (fn((a * w.in[1] + b) * w.in[2] + c)) return;
        }
      }
    }
  }
  AB_HD I divisor(const PoolPlanes<I>& p) const {
    if (p.count_padding && !p.w.adaptive) return p.w.kernel[0] * p.w.kernel[1] * p.w.kernel[2];
    const I seen = (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]);
    return seen > 1 ? seen : 1;
  }
};

// Numbers of neighboring channels, which a thread processes at once.
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
  template <class T, int kCount, class I>
  AB_HD static PoolNumbers<T, kCount> of(const PoolPlanes<I>& p, const PoolRange<I>& range, const Pack<T, kCount>* x) {
    // The result of a window without elements.
    PoolNumbers<T, kCount> top(static_cast<Compute<T>>(std::numeric_limits<float>::lowest()));
    range.each_until(p.w, [&](I i) {
      const PoolNumbers<T, kCount> value(x[i * p.step()]);
      for (int e = 0; e < kCount; ++e) {
        if (value.at[e] > top.at[e] || value.at[e] != value.at[e]) top.at[e] = value.at[e];  // NaN propagates
      }
      return false;
    });
    return top;
  }
  // Adds the gradient of a window to element `own`: all of it if that is the first that equals the result.
  template <class T, int kCount, class I>
  AB_HD static void share(const PoolPlanes<I>& p, const PoolRange<I>& range, I own, const Pack<T, kCount>* x,
                          const Pack<T, kCount>& out, const Pack<T, kCount>& dout, PoolNumbers<T, kCount>* sum) {
    const PoolNumbers<T, kCount> top(out), mine(x[own * p.step()]);
    bool first[kCount], any = false;
    for (int e = 0; e < kCount; ++e) any |= first[e] = mine.at[e] == top.at[e];
    if (!any) return;
    range.each_until(p.w, [&](I i) {
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
  template <class T, int kCount, class I>
  AB_HD static PoolNumbers<T, kCount> of(const PoolPlanes<I>& p, const PoolRange<I>& range, const Pack<T, kCount>* x) {
    PoolNumbers<T, kCount> sum(Compute<T>{0});
    range.each_until(p.w, [&](I i) {
      const PoolNumbers<T, kCount> value(x[i * p.step()]);
      for (int e = 0; e < kCount; ++e) sum.at[e] += value.at[e];
      return false;
    });
    for (Compute<T>& number : sum.at) number = number / static_cast<Compute<T>>(range.divisor(p));
    return sum;
  }
  template <class T, int kCount, class I>
  AB_HD static void share(const PoolPlanes<I>& p, const PoolRange<I>& range, I, const Pack<T, kCount>*,
                          const Pack<T, kCount>&, const Pack<T, kCount>& dout, PoolNumbers<T, kCount>* sum) {
    const PoolNumbers<T, kCount> d(dout);
    for (int e = 0; e < kCount; ++e) sum->at[e] += d.at[e] / static_cast<Compute<T>>(range.divisor(p));
  }
};

// Whether 32 bits hold every index.
inline bool is_narrow(const PoolArgs& a) {
  const WindowDesc& w = a.window;
  int64_t ins = a.batch * a.channels, outs = ins;
  bool narrow = true;
  for (int d = 0; d < 3; ++d) {
    ins *= w.in[d], outs *= w.out[d];
    for (const int64_t extent : {w.in[d], w.out[d], w.kernel[d], w.stride[d], w.before[d]}) {
      narrow = narrow && extent < (int64_t{1} << 15);  // so that products of two fit
    }
  }
  return narrow && ins < (int64_t{1} << 31) && outs < (int64_t{1} << 31);
}

// fn(planes, the number of channels that a thread processes at once): 16 bytes of them if they are adjacent in all
// operands.
template <class T, class Fn> int by_channels(const PoolArgs& a, const Fn& fn) {
  constexpr int kCount = 16 / sizeof(T);
  const auto fits = [](const auto& operand) { return packed<Pack<T, kCount>>(operand.template get<T>()); };
  const bool packs =
      a.window.channels_last && a.channels % kCount == 0 && fits(a.x) && fits(a.out) && fits(a.dout) && fits(a.result);
  const auto run = [&](auto count) {
    if (is_narrow(a)) return fn(PoolPlanes<int32_t>(a, decltype(count)::value), count);
    return fn(PoolPlanes<int64_t>(a, decltype(count)::value), count);
  };
  return packs ? run(std::integral_constant<int, kCount>{}) : run(std::integral_constant<int, 1>{});
}

template <class Kind> struct Pool {
  using Args = PoolArgs;
  template <class T, int kCount, class I> struct Body {
    PoolPlanes<I> p;
    const Pack<T, kCount>* x;
    Pack<T, kCount>* out;
    AB_HD void operator()(int64_t n) const {
      const I i = static_cast<I>(n);
      const PoolRange<I> range(p.w, PoolPlace<I>(p.place(i, p.w.outs()), p.w.out));
      Kind::template of<T, kCount>(p, range, x + p.begin(i, p.w.outs(), p.w.ins())).leave(out + i);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return by_channels<T>(a, [&]<class I>(const PoolPlanes<I>& p, auto count) {
      using P = Pack<T, decltype(count)::value>;
      return each(launch, p.count * p.w.outs(), Body<T, decltype(count)::value, I>{p, a.x.get<P>(), a.result.get<P>()});
    });
  }
};

template <class Kind> struct PoolGrad {
  using Args = PoolArgs;
  template <class T, int kCount, class I> struct Body {
    PoolPlanes<I> p;
    const Pack<T, kCount>*x, *out, *dout;
    Pack<T, kCount>* dx;
    AB_HD void operator()(int64_t n) const {
      const PoolWindowsOf<I>& w = p.w;
      const I i = static_cast<I>(n);
      const I own = p.place(i, w.ins()), from = p.begin(i, w.ins(), w.ins()), to = p.begin(i, w.ins(), w.outs());
      const PoolPlace<I> place(own, w.in);
      I first[3], last[3];
      for (int d = 0; d < 3; ++d) w.windows_of(d, place.at[d], first + d, last + d);
      PoolNumbers<T, kCount> sum(Compute<T>{0});
      for (I a = first[0]; a <= last[0]; ++a) {
        for (I b = first[1]; b <= last[1]; ++b) {
          for (I c = first[2]; c <= last[2]; ++c) {
            const PoolRange<I> range(w, PoolPlace<I>(a, b, c));
            const I k = to + ((a * w.out[1] + b) * w.out[2] + c) * p.step();
            if (range.holds(place)) Kind::template share<T, kCount>(p, range, own, x + from, out[k], dout[k], &sum);
          }
        }
      }
      sum.leave(dx + i);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return by_channels<T>(a, [&]<class I>(const PoolPlanes<I>& p, auto count) {
      using P = Pack<T, decltype(count)::value>;
      return each(
          launch, p.count * p.w.ins(),
          Body<T, decltype(count)::value, I>{p, a.x.get<P>(), a.out.get<P>(), a.dout.get<P>(), a.result.get<P>()});
    });
  }
};

AB_KERNEL("pool/max", Pool<MaxOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool/avg", Pool<MeanOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool_grad/max", PoolGrad<MaxOfWindow>, float, double, half, bfloat16);
AB_KERNEL("pool_grad/avg", PoolGrad<MeanOfWindow>, float, double, half, bfloat16);

}  // namespace anabranch::device
