// Dtype conversion on devices: "cast/<from>/<to>".
#include "ops/device/pack.h"
#include "ops/math/element_functions.h"

namespace anabranch::device {

struct Cast {
  using Args = MapArgs;
  template <class From, class To> struct Body {
    const From* x;
    To* y;
    AB_HD void operator()(int64_t i) const { store(y + i, math::converted_number<Compute<To>>(load(x[i]))); }
  };
  // Processes 16 bytes of the narrower type at once.
  template <class From, class To, int kCount> struct Packs {
    const Pack<From, kCount>* x;
    Pack<To, kCount>* y;
    AB_HD void operator()(int64_t i) const {
      const Pack<From, kCount> from = x[i];
      Pack<To, kCount> to;
      for (int e = 0; e < kCount; ++e) store(to.at + e, math::converted_number<Compute<To>>(load(from.at[e])));
      y[i] = to;
    }
  };
  // The conversions of mixed precision, which process whole parameters.
  template <class From, class To>
  static constexpr bool kOfManyElements =
      sizeof(From) + sizeof(To) == 6 && std::is_same_v<Compute<From>, float>&& std::is_same_v<Compute<To>, float>;

  template <class From, class To> static int run(const Launch& launch, const Args& a) {
    if constexpr (kOfManyElements<From, To>) {
      constexpr int kCount = 8;
      using FromPack = Pack<From, kCount>;
      using ToPack = Pack<To, kCount>;
      if (a.n >= kManyElements && a.n % kCount == 0 && packed<FromPack>(a.x.get<From>()) &&
          packed<ToPack>(a.y.get<To>()))
        return each(launch, a.n / kCount, Packs<From, To, kCount>{a.x.get<FromPack>(), a.y.get<ToPack>()});
    }
    return each(launch, a.n, Body<From, To>{a.x.get<From>(), a.y.get<To>()});
  }
};

template <class From> bool add_casts() {
  return add_kernels<Cast, Types<From, float>, Types<From, double>, Types<From, half>, Types<From, bfloat16>,
                     Types<From, int32_t>, Types<From, int64_t>, Types<From, int16_t>, Types<From, int8_t>,
                     Types<From, uint8_t>, Types<From, bool>>("cast");
}

[[maybe_unused]] static const bool all_added =
    add_casts<float>() && add_casts<double>() && add_casts<half>() && add_casts<bfloat16>() && add_casts<int32_t>() &&
    add_casts<int64_t>() && add_casts<int16_t>() && add_casts<int8_t>() && add_casts<uint8_t>() && add_casts<bool>();

}  // namespace anabranch::device
