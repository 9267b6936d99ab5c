// Random numbers: those of the paper's rounds, in launches of any size.
#include "host_kernels.h"

namespace anabranch::device {
namespace {

uint64_t mixed(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Philox4x32-10, written down again.
std::array<uint32_t, 4> rounds(uint64_t key, uint64_t index, uint32_t step, uint32_t replica) {
  auto a = static_cast<uint32_t>(index), b = static_cast<uint32_t>(index >> 32), c = step, d = replica;
  auto k = static_cast<uint32_t>(key), l = static_cast<uint32_t>(key >> 32);
  for (int r = 0; r < 10; ++r, k += 0x9E3779B9u, l += 0xBB67AE85u) {
    const uint64_t p = a * uint64_t{0xD2511F53}, q = c * uint64_t{0xCD9E8D57};
    a = static_cast<uint32_t>(q >> 32) ^ b ^ k;
    b = static_cast<uint32_t>(q);
    c = static_cast<uint32_t>(p >> 32) ^ d ^ l;
    d = static_cast<uint32_t>(p);
  }
  return {a, b, c, d};
}

struct Stream {
  uint64_t seed = 3, stream = 5, iterations = 0;
  uint32_t step = 7, replica = 1;
  double uniform53(uint64_t i) const {
    const auto b = block(i / 2);
    const uint64_t high = b[i % 2 * 2], low = b[i % 2 * 2 + 1];
    return std::ldexp(static_cast<double>((high << 32 | low) >> 11), -53);
  }
  float uniform(uint64_t i) const { return std::ldexp(static_cast<float>(block(i / 4)[i % 4] >> 8), -24); }
  std::array<uint32_t, 4> block(uint64_t i) const {
    uint64_t key = mixed(seed ^ mixed(stream + 0x9e3779b97f4a7c15u));
    if (iterations) key = mixed(key ^ mixed(iterations));
    return rounds(key, i, step, replica);
  }
  DrawArgs args() const {
    DrawArgs a = {};
    a.seed = seed, a.stream = stream, a.iterations = iterations, a.fixed_step = step, a.replica = replica;
    return a;
  }
};

TEST(DeviceDraw, TheRoundsAreThePapers) {
  EXPECT_EQ(rounds(0, 0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

template <class T> class DeviceDraw : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceDraw, RealFloats);

TYPED_TEST(DeviceDraw, NumbersOfAStream) {
  using T = TypeParam;
  for (const size_t n : {size_t{0}, size_t{1}, size_t{1001}}) {
    for (const uint64_t iterations : {0, 9}) {
      Stream own;
      own.iterations = iterations;
      Array<T> y(n);
      Array<int32_t> step(std::vector<double>{7});
      DrawArgs a = own.args();
      a.fixed_step = 99, a.step = step.in(), a.y = y.out(), a.n = static_cast<int64_t>(n), a.p[0] = -2, a.p[1] = 3;
      launch(key_of<T>("draw/uniform"), a);
      for (size_t i = 0; i < n; ++i) expect_near(y[i], -2 + 5 * own.uniform53(i), rounding<T>(), "uniform");
      launch(key_of<T>("draw/gaussian"), a);
      for (size_t i = 0; i < n; ++i) {
        const double r = std::sqrt(-2 * std::log1p(-own.uniform53(i / 2 * 2))), phi = 2 * M_PI * own.uniform53(i | 1);
        expect_near(y[i], -2 + 3 * r * (i % 2 ? std::sin(phi) : std::cos(phi)), rounding<T>(), "gaussian");
      }
      launch(key_of<T>("draw/truncated"), a);
      for (size_t i = 0; i < n; ++i) {  // by its distribution function
        const double z = (y[i] + 2) / 3, tail = 0.5 * std::erfc(std::sqrt(2.0));
        const double at = (0.5 * std::erfc(-z / std::sqrt(2.0)) - tail) / (1 - 2 * tail);
        expect_near(at, own.uniform53(i), 4 * rounding<T>(), "truncated");
      }
    }
  }
}

TEST(DeviceDraw, Integers) {
  const Stream own;
  Array<int64_t> y(500);
  DrawArgs a = own.args();
  a.y = y.out(), a.n = 500, a.p[0] = -3, a.p[1] = 4;
  launch("draw/randint/i64", a);
  for (size_t i = 0; i < 500; ++i) EXPECT_EQ(y[i], -3 + std::floor(own.uniform53(i) * 7));
}

template <class T> class DeviceDropout : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceDropout, Floats);

// The numbers are those of the elements, whether they are taken one by one, by fours, or by eights of 16 bits.
TYPED_TEST(DeviceDropout, MasksAndGradients) {
  using T = TypeParam;
  const Stream own;
  const auto many = static_cast<size_t>(kManyElements);
  for (const size_t n : {size_t{203}, size_t{204}, many + 8, many + 4}) {
    const auto xs = held<T>(random_values(n, 1, 2));
    Array<T> x(xs), d(xs), dx(n), apart(n + 1);
    Array<uint8_t> mask(n);
    for (size_t i = 0; i < n; ++i) apart.at(i + 1) = x.at(i);
    DrawArgs a = own.args();
    a.x = x.in(), a.y = x.out(), a.mask = mask.out(), a.n = static_cast<int64_t>(n), a.p[0] = 0.25, a.p[1] = 2;
    launch(key_of<T>("draw/dropout"), a);
    const bool eights = sizeof(T) == 2 && n == many + 8;
    for (const Launched& l : last_launched()) EXPECT_EQ(l.rows, static_cast<int64_t>(eights ? n / 8 : (n + 3) / 4));
    launch(key_of<T>("dropout_grad"), MapGradArgs{mask.in(), {}, d.in(), dx.out(), a.n, {2}});
    for (size_t i = 0; i < n; ++i) {
      const bool kept = own.uniform(i) >= 0.25f;
      ASSERT_EQ(mask[i], kept) << i << " of " << n;
      ASSERT_EQ(x[i], kept ? 2 * xs[i] : 0) << i << " of " << n;
      ASSERT_EQ(dx[i], x[i]) << i << " of " << n;
    }
    a.x = in_from(apart, 1), a.y = out_from(apart, 1), a.mask = {};
    launch(key_of<T>("draw/dropout"), a);
    for (const Launched& l : last_launched()) EXPECT_EQ(l.rows, static_cast<int64_t>((n + 3) / 4));
    expect_same_bits(apart, x, "where no pack starts", 1);
  }
}

}  // namespace
}  // namespace anabranch::device
