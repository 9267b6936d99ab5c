#include "ptx_ops.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "ops/device/half.h"

namespace anabranch::cuda {
namespace {

using Table = std::unordered_map<std::string, PtxOp>;
using std::bit_cast;

template <class T> T from_word(PtxWord word) {
  if constexpr (std::is_same_v<T, bool>) return word != 0;
  T x;
  memcpy(&x, &word, sizeof x);
  return x;
}

// A GPU computes one NaN, which is not the one of CPUs.
template <class T> PtxWord to_word(T x) {
  if constexpr (std::is_same_v<T, float>) {
    if (x != x) return 0x7fffffff;
  }
  PtxWord word = 0;
  memcpy(&word, &x, sizeof x);
  return word;
}

template <class F, class R, class... A> PtxOp op_of(R (*)(A...)) {
  return {sizeof...(A), [](const PtxWord* in) {
            return [&]<size_t... k>(std::index_sequence<k...>) { return to_word<R>(F{}(from_word<A>(in[k])...)); }
            (std::index_sequence_for<A...>());
          }};
}
template <class F> PtxOp op(F f) {
  static_assert(std::is_empty_v<F>, "a lambda, which is made again where it is called");
  return op_of<F>(+f);
}

// ---- roundings: volatile keeps an operation within the time of its mode

struct Rounding {
  explicit Rounding(int mode) { fesetround(mode); }
  ~Rounding() { fesetround(FE_TONEAREST); }
};
float rounded_sum(float a, float b, int mode) {
  const Rounding during(mode);
  volatile float x = a, y = b, result = x + y;
  return result;
}
float rounded_fma(float a, float b, float c, int mode) {
  const Rounding during(mode);
  volatile float x = a, y = b, z = c, result = std::fma(x, y, z);
  return result;
}

float flushed(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

// As GPUs have it: beyond 2^126 the reciprocal of the divisor is 0.
float approximate_quotient(float a, float b) {
  if (std::abs(b) > 0x1p126f && std::abs(b) < std::numeric_limits<float>::infinity()) return a * std::copysign(0.0f, b);
  return a / b;
}

// To the nearest number that n bits and a least exponent have, ties to even.
float with_bits(float x, int bits, int least, float most) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int unit = std::max(std::ilogb(x) - bits + 1, least);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(double{x}, -unit)), unit);
  return std::abs(rounded) > most ? std::copysign(std::numeric_limits<float>::infinity(), x)
                                  : std::copysign(static_cast<float>(rounded), x);
}

// The bits of a number that is a half.
uint16_t half_bits(float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const float size = std::abs(x);
  if (size != size) return 0x7fff;
  if (std::isinf(size)) return sign | 0x7c00;
  if (size < 0x1p-14f) return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(size, 24)));
  const int exponent = std::ilogb(size);
  return static_cast<uint16_t>(sign | ((exponent + 15) << 10) |
                               static_cast<int>(std::ldexp(size, 10 - exponent) - 1024));
}
float of_half(uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const float infinite = fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  const float size = exponent == 31  ? infinite
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return h >> 15 ? -size : size;
}

template <class To> To whole(float x) {  // saturated; of a NaN 0
  if (x != x) return 0;
  const double least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max();
  return static_cast<To>(std::clamp(double{x}, least, most));
}

template <class T> T left(T x, uint32_t by) { return by < 8 * sizeof x ? static_cast<T>(x << by) : 0; }
template <class T> T right(T x, uint32_t by) { return by < 8 * sizeof x ? static_cast<T>(x >> by) : 0; }

// ---- the table

void add_floats(Table& t) {
  const PtxOp add = op([](float a, float b) { return a + b; }), sub = op([](float a, float b) { return a - b; }),
              mul = op([](float a, float b) { return a * b; });
  t["add.rn.f32"] = add;
  t["sub.rn.f32"] = sub;
  t["mul.rn.f32"] = mul;
  t["add.rz.f32"] = op([](float a, float b) { return rounded_sum(a, b, FE_TOWARDZERO); });
  t["fma.rn.f32"] = op([](float a, float b, float c) { return std::fma(a, b, c); });
  t["fma.rm.f32"] = op([](float a, float b, float c) { return rounded_fma(a, b, c, FE_DOWNWARD); });
  t["fma.rz.f32"] = op([](float a, float b, float c) { return rounded_fma(a, b, c, FE_TOWARDZERO); });
  t["div.rn.f32"] = op([](float a, float b) { return a / b; });
  t["rcp.rn.f32"] = op([](float a) { return 1 / a; });
  t["sqrt.rn.f32"] = op([](float a) { return std::sqrt(a); });
  t["mul.rn.f64"] = op([](double a, double b) { return a * b; });
  t["abs.f32"] = op([](uint32_t a) { return a & 0x7fffffff; });
  t["neg.f32"] = op([](uint32_t a) { return a ^ 0x80000000; });
  t["copysign.f32"] = op([](uint32_t sign, uint32_t size) { return (sign & 0x80000000) | (size & 0x7fffffff); });
  t["div.approx.f32"] = op([](float a, float b) { return approximate_quotient(a, b); });
  t["ex2.approx.f32"] = op([](float a) { return static_cast<float>(std::exp2(double{a})); });
  t["ex2.approx.ftz.f32"] = op([](float a) { return flushed(static_cast<float>(std::exp2(double{flushed(a)}))); });
  t["rcp.approx.ftz.f32"] = op([](float a) { return flushed(1 / flushed(a)); });
  t["rsqrt.approx.ftz.f32"] = op([](float a) { return static_cast<float>(1 / std::sqrt(double{flushed(a)})); });
}

void add_conversions(Table& t) {
  t["cvt.rmi.f32.f32"] = op([](float a) { return std::floor(a); });
  t["cvt.rpi.f32.f32"] = op([](float a) { return std::ceil(a); });
  t["cvt.rni.f32.f32"] = op([](float a) { return std::nearbyint(a); });
  t["cvt.rzi.f32.f32"] = op([](float a) { return std::trunc(a); });
  t["cvt.rni.s32.f32"] = op([](float a) { return whole<int32_t>(std::nearbyint(a)); });
  t["cvt.rzi.s32.f32"] = op([](float a) { return whole<int32_t>(std::trunc(a)); });
  t["cvt.sat.f32.f32"] = op([](float a) { return a > 0 ? std::min(a, 1.0f) : 0.0f; });
  t["cvt.rn.f32.f64"] = op([](double a) { return static_cast<float>(a); });
  t["cvt.rn.f32.s32"] = op([](int32_t a) { return static_cast<float>(a); });
  t["cvt.rn.f32.u32"] = op([](uint32_t a) { return static_cast<float>(a); });
  t["cvt.rn.f64.s64"] = op([](int64_t a) { return static_cast<double>(a); });
  t["cvt.rn.f16.f32"] = op([](float a) { return half_bits(with_bits(a, 11, -24, 65504)); });
  t["cvt.rn.bf16.f32"] = op([](float a) { return device::float_to_bfloat16(a); });
  t["cvt.f32.f16"] = op([](uint16_t a) { return of_half(a); });
  t["cvt.u16.u32"] = op([](uint32_t a) { return static_cast<uint16_t>(a); });
  t["cvt.u32.u16"] = op([](uint16_t a) { return uint32_t{a}; });
  t["cvt.u32.u64"] = op([](uint64_t a) { return static_cast<uint32_t>(a); });
  t["cvt.u64.u32"] = op([](uint32_t a) { return uint64_t{a}; });
}

void add_integers(Table& t) {
  t["add.s32"] = op([](uint32_t a, uint32_t b) { return a + b; });
  t["sub.s32"] = op([](uint32_t a, uint32_t b) { return a - b; });
  t["neg.s32"] = op([](uint32_t a) { return 0 - a; });
  t["min.u32"] = op([](uint32_t a, uint32_t b) { return std::min(a, b); });
  t["add.s64"] = t["add.u64"] = op([](uint64_t a, uint64_t b) { return a + b; });
  t["sub.s64"] = op([](uint64_t a, uint64_t b) { return a - b; });
  t["mul.lo.s64"] = op([](uint64_t a, uint64_t b) { return a * b; });
  t["mad.lo.s64"] = op([](uint64_t a, uint64_t b, uint64_t c) { return a * b + c; });
  t["mul.wide.u32"] = op([](uint32_t a, uint32_t b) { return uint64_t{a} * b; });
  t["mul.wide.s32"] = op([](int32_t a, int32_t b) { return int64_t{a} * b; });
  t["mad.wide.u32"] = op([](uint32_t a, uint32_t b, uint64_t c) { return uint64_t{a} * b + c; });
  t["div.u32"] = op([](uint32_t a, uint32_t b) { return b ? a / b : ~uint32_t{0}; });
  t["div.s64"] = op([](int64_t a, int64_t b) { return b ? a / b : int64_t{-1}; });
  t["and.b32"] = op([](uint32_t a, uint32_t b) { return a & b; });
  t["and.b64"] = op([](uint64_t a, uint64_t b) { return a & b; });
  t["or.b32"] = op([](uint32_t a, uint32_t b) { return a | b; });
  t["or.b64"] = op([](uint64_t a, uint64_t b) { return a | b; });
  t["xor.b32"] = op([](uint32_t a, uint32_t b) { return a ^ b; });
  t["shl.b32"] = op([](uint32_t a, uint32_t by) { return left(a, by); });
  t["shr.u32"] = op([](uint32_t a, uint32_t by) { return right(a, by); });
  t["shr.u64"] = op([](uint64_t a, uint32_t by) { return right(a, by); });
  t["bfi.b64"] = op([](uint64_t from, uint64_t to, uint32_t at, uint32_t bits) {
    const uint64_t mask = left(right(~uint64_t{0}, 64 - bits), at);
    return (to & ~mask) | (left(from, at) & mask);
  });
}

void add_choices(Table& t) {
  for (const char* type : {"b32", "u32", "f32"}) t[std::string("mov.") + type] = op([](uint32_t a) { return a; });
  t["mov.b64"] = t["mov.u64"] = op([](uint64_t a) { return a; });
  t["selp.b32"] = t["selp.u32"] = t["selp.f32"] = op([](uint32_t a, uint32_t b, bool first) { return first ? a : b; });
  t["and.pred"] = op([](bool a, bool b) { return a && b; });
  t["or.pred"] = op([](bool a, bool b) { return a || b; });
  t["xor.pred"] = op([](bool a, bool b) { return a != b; });
  t["setp.eq.s32"] = op([](int32_t a, int32_t b) { return a == b; });
  t["setp.ne.s32"] = op([](int32_t a, int32_t b) { return a != b; });
  t["setp.lt.s32"] = op([](int32_t a, int32_t b) { return a < b; });
  t["setp.gt.u32"] = op([](uint32_t a, uint32_t b) { return a > b; });
  t["setp.lt.u32"] = op([](uint32_t a, uint32_t b) { return a < b; });
  t["setp.eq.s64"] = op([](int64_t a, int64_t b) { return a == b; });
  t["setp.ge.s64"] = op([](int64_t a, int64_t b) { return a >= b; });
  // u: also where one is a NaN.
  t["setp.eq.f32"] = op([](float a, float b) { return a == b; });
  t["setp.ge.f32"] = op([](float a, float b) { return a >= b; });
  t["setp.gt.f32"] = op([](float a, float b) { return a > b; });
  t["setp.le.f32"] = op([](float a, float b) { return a <= b; });
  t["setp.lt.f32"] = op([](float a, float b) { return a < b; });
  t["setp.geu.f32"] = op([](float a, float b) { return !(a < b); });
  t["setp.gtu.f32"] = op([](float a, float b) { return !(a <= b); });
  t["setp.leu.f32"] = op([](float a, float b) { return !(a > b); });
  t["setp.ltu.f32"] = op([](float a, float b) { return !(a >= b); });
  t["setp.neu.f32"] = op([](float a, float b) { return a != b; });
  t["setp.num.f32"] = op([](float a, float b) { return a == a && b == b; });
}

}  // namespace

const PtxOp* find_ptx_op(const std::string& name) {
  static const Table table = [] {
    Table t;
    add_floats(t);
    add_conversions(t);
    add_integers(t);
    add_choices(t);
    return t;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace anabranch::cuda
