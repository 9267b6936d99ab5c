// Random numbers on devices: "draw/uniform", "draw/gaussian", "draw/truncated", "draw/randint", the same numbers as on
// the CPU; "draw/dropout", "draw/factors" and "dropout_grad". `step` holds one uint32_t.
#include "ops/device/pack.h"
#include "ops/kernels/philox_rounds.h"
#include "ops/tensor/random_functions.h"

namespace anabranch::device {

struct DrawOf {  // the random numbers of this run
  uint64_t key;
  const uint32_t* step;
  uint32_t fixed_step, replica;
  explicit DrawOf(const DrawArgs& a)
      : key(philox::key_of(a.seed, a.stream, a.iterations)),
        step(a.step.get<uint32_t>()),
        fixed_step(a.fixed_step),
        replica(a.replica) {}
  AB_HD philox::Draw get() const { return {key, step ? *step : fixed_step, replica}; }
};

// p: min, max.
struct Uniform {
  template <class T> AB_HD static void make(const philox::Draw& draw, uint64_t pair, const double* p, T (&out)[2]) {
    for (uint64_t k = 0; k < 2; ++k) {
      out[k] = tensor::uniform_in(draw.uniform53(2 * pair + k), static_cast<T>(p[0]), static_cast<T>(p[1]));
    }
  }
};
// p: mean, standard deviation.
struct Gaussian {
  template <class T> AB_HD static void make(const philox::Draw& draw, uint64_t pair, const double* p, T (&out)[2]) {
    const auto z = draw.normal_pair(pair);
    for (int k = 0; k < 2; ++k) out[k] = static_cast<T>(p[0] + p[1] * z[k]);
  }
};
struct Truncated {
  template <class T> AB_HD static void make(const philox::Draw& draw, uint64_t pair, const double* p, T (&out)[2]) {
    const double tail = tensor::two_deviations_tail();
    for (uint64_t k = 0; k < 2; ++k) {
      out[k] = static_cast<T>(p[0] + p[1] * tensor::truncated_normal(draw.uniform53(2 * pair + k), tail));
    }
  }
};
// p: low, high.
struct RandInt {
  template <class T> AB_HD static void make(const philox::Draw& draw, uint64_t pair, const double* p, T (&out)[2]) {
    const auto low = static_cast<int64_t>(p[0]), count = static_cast<int64_t>(p[1]) - low;
    for (uint64_t k = 0; k < 2; ++k) {
      out[k] = static_cast<T>(low + tensor::below(draw.uniform53(2 * pair + k), count));
    }
  }
};

template <class F> struct DrawPairs {
  using Args = DrawArgs;
  template <class T> struct Body {
    DrawOf draw;
    T* y;
    int64_t n;
    double p[kMaxNumbers];
    AB_HD void operator()(int64_t pair) const {
      T made[2];
      F::make(draw.get(), static_cast<uint64_t>(pair), p, made);
      y[2 * pair] = made[0];
      if (2 * pair + 1 < n) y[2 * pair + 1] = made[1];
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    Body<T> body{DrawOf(a), a.y.get<T>(), a.n, {}};
    for (int k = 0; k < kMaxNumbers; ++k) body.p[k] = a.p[k];
    return each(launch, (a.n + 1) / 2, body);
  }
};

// p: rate, factor for kept elements. y may alias x.
struct Dropout {
  using Args = DrawArgs;
  template <class T> struct Body {
    DrawOf draw;
    const T* x;
    T* y;
    uint8_t* mask;
    int64_t n;
    float rate;
    Compute<T> factor;
    AB_HD void operator()(int64_t block) const {
      const philox::Block bits = draw.get().block(static_cast<uint64_t>(block));
      for (int k = 0; k < 4; ++k) {
        const int64_t i = 4 * block + k;
        if (i >= n) return;
        const bool kept = philox::to_unit(bits[static_cast<size_t>(k)]) >= rate;
        if (mask) mask[i] = kept;
        store(y + i, kept ? load(x[i]) * factor : Compute<T>(0));
      }
    }
  };
  // The elements of kBlocks blocks of numbers, read and written at once; the loads are in flight while numbers are
  // drawn.
  template <class T, int kBlocks> struct Packs {
    static constexpr int kCount = 4 * kBlocks;
    using Elements = Pack<T, kCount>;
    using Flags = Pack<uint8_t, kCount>;
    Body<T> o;
    bool fit() const {
      return o.n % kCount == 0 && packed<Elements>(o.x) && packed<Elements>(o.y) && packed<Flags>(o.mask);
    }
    int64_t count() const { return o.n / kCount; }
    AB_HD void operator()(int64_t i) const {
      auto p = reinterpret_cast<const Elements*>(o.x)[i];
      Flags flags;
      const philox::Draw draw = o.draw.get();
      for (int b = 0; b < kBlocks; ++b) {
        const philox::Block bits = draw.block(static_cast<uint64_t>(i * kBlocks + b));
        for (int k = 0; k < 4; ++k) {
          T& own = p.at[4 * b + k];
          const bool kept = philox::to_unit(bits[static_cast<size_t>(k)]) >= o.rate;
          flags.at[4 * b + k] = kept;
          store(&own, kept ? load(own) * o.factor : Compute<T>(0));
        }
      }
      if (o.mask) reinterpret_cast<Flags*>(o.mask)[i] = flags;
      reinterpret_cast<Elements*>(o.y)[i] = p;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Body<T> body{DrawOf(a),
                       a.x.get<T>(),
                       a.y.get<T>(),
                       a.mask.get<uint8_t>(),
                       a.n,
                       static_cast<float>(a.p[0]),
                       static_cast<Compute<T>>(a.p[1])};
    if constexpr (sizeof(T) == 2) {
      const Packs<T, 2> eights{body};
      if (a.n >= kManyElements && eights.fit()) return each(launch, eights.count(), eights);
    }
    const Packs<T, 1> fours{body};
    if (fours.fit()) return each(launch, fours.count(), fours);
    return each(launch, (a.n + 3) / 4, body);
  }
};

// y = x mask, where the mask, of x's type, holds 0 or the factor for kept elements. p: rate, that factor, the number of
// the first draw.
struct DropFactors {
  using Args = DrawArgs;
  template <class T> struct Body {
    DrawOf draw;
    const T* x;
    T *y, *factors;
    uint64_t first;
    float rate;
    T kept;
    AB_HD void operator()(int64_t i) const {
      factors[i] = draw.get().uniform(first + static_cast<uint64_t>(i)) >= rate ? kept : T(0);
      y[i] = factors[i] * x[i];
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n,
                Body<T>{DrawOf(a), a.x.get<T>(), a.y.get<T>(), a.mask.get<T>(), static_cast<uint64_t>(a.p[2]),
                        static_cast<float>(a.p[0]), static_cast<T>(a.p[1])});
  }
};

// x: the mask, dy: Out@GRAD; p: factor for kept elements.
struct DropoutGrad {
  using Args = MapGradArgs;
  template <class T> struct Body {
    const uint8_t* mask;
    const T* dy;
    T* dx;
    Compute<T> factor;
    AB_HD void operator()(int64_t i) const { store(dx + i, mask[i] ? load(dy[i]) * factor : Compute<T>(0)); }
  };
  template <class T> struct Packed {  // eight at a time
    const Pack<uint8_t, 8>* mask;
    const Pack<T, 8>* dy;
    Pack<T, 8>* dx;
    Compute<T> factor;
    AB_HD void operator()(int64_t i) const {
      const auto kept = mask[i];
      auto p = dy[i];
      for (int k = 0; k < 8; ++k) store(&p.at[k], kept.at[k] ? load(p.at[k]) * factor : Compute<T>(0));
      dx[i] = p;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const auto* mask = a.x.get<uint8_t>();
    const T* dy = a.dy.get<T>();
    T* dx = a.dx.get<T>();
    const auto factor = static_cast<Compute<T>>(a.p[0]);
    using Flags = Pack<uint8_t, 8>;
    using Eight = Pack<T, 8>;
    const bool packs = sizeof(T) == 2 && a.n % 8 == 0 && a.n >= kManyElements && packed<Flags>(mask) &&
                       packed<Eight>(dy) && packed<Eight>(dx);
    if (!packs) return each(launch, a.n, Body<T>{mask, dy, dx, factor});
    return each(launch, a.n / 8,
                Packed<T>{reinterpret_cast<const Flags*>(mask), reinterpret_cast<const Eight*>(dy),
                          reinterpret_cast<Eight*>(dx), factor});
  }
};

AB_KERNEL("draw/uniform", DrawPairs<Uniform>, float, double);
AB_KERNEL("draw/gaussian", DrawPairs<Gaussian>, float, double);
AB_KERNEL("draw/truncated", DrawPairs<Truncated>, float, double);
AB_KERNEL("draw/randint", DrawPairs<RandInt>, int32_t, int64_t);
AB_KERNEL("draw/dropout", Dropout, float, double, half, bfloat16);
AB_KERNEL("draw/factors", DropFactors, float, double);
AB_KERNEL("dropout_grad", DropoutGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
