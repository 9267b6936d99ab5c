// Norms of any order, of differences and along lines.
#include <limits>

#include "differences.h"
#include "ops/device/args_fold.h"

namespace anabranch::device {
namespace {

template <class T> class DeviceDistances : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceDistances, Floats);

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double norm(const Values& sizes, double p) {
  double total = p == -kInfinite ? kInfinite : 0;
  for (double s : sizes) {
    if (std::isinf(p))
      total = p > 0 ? std::max(total, s) : std::min(total, s);
    else
      total += p == 0 ? double(s != 0) : std::pow(s, p);
  }
  return p == 0 || std::isinf(p) ? total : std::pow(total, 1 / p);
}

// x [3, 4] and y [3, 1].
Values sizes(const Values& x, const Values& y) {
  Values made(12);
  for (size_t i = 0; i < 12; ++i) made[i] = std::abs(x[i] - y[i / 4]);
  return made;
}

TYPED_TEST(DeviceDistances, OfTwoTensors) {
  using T = TypeParam;
  const auto xs = held<T>(random_values(12, 1, 2)), ys = held<T>(random_values(3, -1, 0.5, 2));
  for (const double p : {0.0, 1.0, 2.0, 3.0, -1.5, kInfinite, -kInfinite}) {
    Array<T> x(xs), y(ys), out(1), d(Values{0.5}), dx(12), dy(3);
    const auto axes = axes_of<3>({3, 4}, {{0, 0}, {4, 1}, {1, 0}});
    launch(key_of<T>("dist"), BinaryArgs{x.in(), y.in(), out.out(), axes, {p}});
    const double expected = norm(sizes(xs, ys), p);
    expect_near(out[0], expected, 8 * rounding<T>(), "dist");
    Array<T> rounded(Values{expected});
    launch(key_of<T>("binary_grad/dist"),
           BinaryGradArgs{x.in(), y.in(), rounded.in(), d.in(), dx.out(), dy.out(), axes, {p}});
    if (std::isinf(p)) continue;  // a rounded distance may be none of the sizes
    expect_all(dx, slopes(xs, [&](const Values& v) { return 0.5 * norm(sizes(v, ys), p); }), "dx", slope_factor<T>());
    expect_all(dy, slopes(ys, [&](const Values& v) { return 0.5 * norm(sizes(xs, v), p); }), "dy", slope_factor<T>());
  }
}

// Lines of a tensor [2, 5, 3].
Values norms(const Values& x, double p) {
  Values made;
  for (size_t line = 0; line < 6; ++line) {
    Values own;
    for (size_t k = 0; k < 5; ++k) own.push_back(std::abs(x[line / 3 * 15 + k * 3 + line % 3]));
    made.push_back(norm(own, p));
  }
  return made;
}

TYPED_TEST(DeviceDistances, AlongLines) {
  using T = TypeParam;
  auto xs = held<T>(random_values(30, 0.5, 2));
  for (size_t i = 0; i < 30; i += 2) xs[i] = -xs[i];
  const auto ds = held<T>(random_values(6, -1, 1, 2));
  for (const double p : {1.0, 2.0, 2.5}) {
    Array<T> x(xs), y(6), d(ds), dx(30);
    launch(key_of<T>("p_norm"), NormArgs{x.in(), {}, {}, y.out(), {}, 2, 5, 3, {p}});
    expect_all(y, norms(xs, p), "p_norm", 8);
    launch(key_of<T>("p_norm_grad"), NormArgs{x.in(), d.in(), y.in(), dx.out(), {}, 2, 5, 3, {p, 1e-12}});
    expect_all(dx, slopes(xs, [&](const Values& v) { return dot(ds, norms(v, p)); }), "dx", slope_factor<T>());
  }
}

}  // namespace
}  // namespace anabranch::device
