// Conversion of numbers on devices: "cast/<from>/<to>".
#include "ops/device/kernels.h"
#include "ops/math/element_functions.h"

namespace anabranch::device {

struct Cast {
  using Args = MapArgs;
  template <class From, class To> struct Body {
    const From* x;
    To* y;
    AB_HD void operator()(int64_t i) const { store(y + i, math::converted_number<Compute<To>>(load(x[i]))); }
  };
  template <class From, class To> static int run(const Launch& launch, const Args& a) {
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
