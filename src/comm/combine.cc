#include "comm/combine.h"

#include <type_traits>

namespace anabranch::comm {
namespace {

// Unsigned, so that a sum beyond the range wraps around.
template <class T, bool = std::is_integral_v<T>> struct Wrapping { using type = T; };
template <class T> struct Wrapping<T, true> { using type = std::make_unsigned_t<T>; };

template <class T> struct Sum {
  T operator()(T a, T b) const {
    using U = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
};
template <class T> struct Prod {
  T operator()(T a, T b) const {
    using U = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};
template <class T> struct Max {
  T operator()(T a, T b) const { return b > a || b != b ? b : a; }
};
template <class T> struct Min {
  T operator()(T a, T b) const { return b < a || b != b ? b : a; }
};

template <class T, class Fn> void each(void* acc, const void* x, int64_t n) {
  T* to = static_cast<T*>(acc);
  const T* from = static_cast<const T*>(x);
  for (int64_t i = 0; i < n; ++i) to[i] = Fn()(to[i], from[i]);
}

template <class T> void combine_as(Combine how, void* acc, const void* x, int64_t n) {
  switch (how) {
    case Combine::kSum: return each<T, Sum<T>>(acc, x, n);
    case Combine::kProd: return each<T, Prod<T>>(acc, x, n);
    case Combine::kMax: return each<T, Max<T>>(acc, x, n);
    case Combine::kMin: return each<T, Min<T>>(acc, x, n);
  }
}

}  // namespace

const char* combine_name(Combine how) {
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min"};
  return kNames[static_cast<int>(how)];
}

void check_combines(Combine how, DType dtype) {
  const bool known =
      dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 || dtype == DType::kInt64;
  AB_CHECK(known, Unsupported, "the {} over processes takes float32, float64, int32 or int64, got {}",
           combine_name(how), dtype_name(dtype));
}

void combine(Combine how, DType dtype, void* acc, const void* x, int64_t n) {
  switch (dtype) {
    case DType::kFloat32: return combine_as<float>(how, acc, x, n);
    case DType::kFloat64: return combine_as<double>(how, acc, x, n);
    case DType::kInt32: return combine_as<int32_t>(how, acc, x, n);
    case DType::kInt64: return combine_as<int64_t>(how, acc, x, n);
    default: check_combines(how, dtype);
  }
}

}  // namespace anabranch::comm
