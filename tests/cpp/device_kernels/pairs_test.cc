// Learned slopes, largest channels and pairs of rows.
#include "differences.h"
#include "ops/device/args_rows.h"

namespace anabranch::device {
namespace {

template <class T> class DevicePairs : public ::testing::Test {};
TYPED_TEST_SUITE(DevicePairs, Floats);

TYPED_TEST(DevicePairs, LearnedSlopesAndMaxout) {
  using T = TypeParam;
  for (const auto& [outer, alphas, inner] : {std::array<int64_t, 3>{1, 1, 24}, {2, 3, 4}, {4, 6, 1}}) {
    const auto xs = held<T>(random_values(24, -2, 2)), ds = held<T>(random_values(24, -1, 1, 2));
    const auto as = held<T>(random_values(static_cast<size_t>(alphas), 0.1, 0.9, 3));
    Array<T> x(xs), alpha(as), y(24), d(ds), dx(24), dalpha(as.size());
    launch(key_of<T>("prelu"), PreluArgs{x.in(), alpha.in(), {}, y.out(), {}, outer, alphas, inner});
    launch(key_of<T>("prelu_grad"),
           PreluArgs{x.in(), alpha.in(), d.in(), dx.out(), dalpha.out(), outer, alphas, inner});
    Values expected(24), slope(24), sums(as.size());
    for (size_t i = 0; i < 24; ++i) {
      const size_t k = i / static_cast<size_t>(inner) % as.size();
      expected[i] = xs[i] > 0 ? xs[i] : as[k] * xs[i];
      slope[i] = xs[i] > 0 ? ds[i] : as[k] * ds[i];
      sums[k] += xs[i] > 0 ? 0 : xs[i] * ds[i];
    }
    expect_all(y, expected, "prelu", 2);
    expect_all(dx, slope, "dx", 2);
    expect_all(dalpha, sums, "dalpha", 4);
  }
  Array<T> x({1, 5, 3, 3, 2, NAN}), y(3), d({10, 20, 30}), dx(6);  // [1, 2, 3]
  launch(key_of<T>("maxout"), FoldArgs{x.in(), y.out(), 1, 2, 3, {}});
  expect_all(y, {3, 5, NAN}, "maxout");
  Array<T> z({1, 5, 3, 3, 2, 3}), best({3, 5, 3});
  launch(key_of<T>("maxout_grad"), MaxoutGradArgs{z.in(), best.in(), d.in(), dx.out(), 1, 2, 3});
  EXPECT_EQ(dx.values(), (Values{0, 20, 30, 10, 0, 0}));
}

template <class T> Values cos_sim(const Values& x, const Values& y, Array<T>* x_norm, Array<T>* y_norm) {
  const int64_t rows = static_cast<int64_t>(x_norm->size()), width = static_cast<int64_t>(x.size()) / rows;
  Array<T> a(x), b(y), out(x_norm->size());
  launch(key_of<T>("cos_sim"), PairArgs{a.in(),
                                        b.in(),
                                        {},
                                        {},
                                        {},
                                        {},
                                        out.out(),
                                        x_norm->out(),
                                        y_norm->out(),
                                        rows,
                                        width,
                                        y_norm->size() == 1 ? 1 : 0,
                                        0});
  return out.values();
}

TYPED_TEST(DevicePairs, CosinesOfRows) {
  using T = TypeParam;
  for (const size_t y_rows : {1, 3}) {
    const auto xs = held<T>(random_values(12, 0.5, 2)), ys = held<T>(random_values(4 * y_rows, 0.5, 2, 2));
    const auto ds = held<T>(random_values(3, -1, 1, 3));
    Array<T> x_norm(3), y_norm(y_rows), x(xs), y(ys), d(ds), dx(12), dy(4 * y_rows);
    const Values out = cos_sim<T>(xs, ys, &x_norm, &y_norm);
    for (size_t r = 0; r < 3; ++r) {
      double a = 0, b = 0, both = 0;
      for (size_t k = 0; k < 4; ++k) {
        const double p = xs[r * 4 + k], q = ys[(y_rows == 1 ? 0 : r) * 4 + k];
        a += p * p, b += q * q, both += p * q;
      }
      expect_near(out[r], both / std::sqrt(a * b), 4 * rounding<T>(), "cosine");
    }
    Array<T> cosine(out);
    launch(key_of<T>("cos_sim_grad"), PairArgs{x.in(),
                                               y.in(),
                                               d.in(),
                                               cosine.in(),
                                               x_norm.in(),
                                               y_norm.in(),
                                               dx.out(),
                                               dy.out(),
                                               {},
                                               3,
                                               4,
                                               y_rows == 1 ? 1 : 0,
                                               0});
    Array<double> m(3), n(y_rows);
    expect_all(dx, slopes(xs, [&](const Values& p) { return dot(ds, cos_sim<double>(p, ys, &m, &n)); }), "dx",
               slope_factor<T>());
    expect_all(dy, slopes(ys, [&](const Values& p) { return dot(ds, cos_sim<double>(xs, p, &m, &n)); }), "dy",
               slope_factor<T>());
  }
}

TYPED_TEST(DevicePairs, InnerAndCrossProducts) {
  using T = TypeParam;
  Array<T> x({1, 2, 3, 4, 5, 6}), y({2, 0, 1, 1, -1, 3}), out(2), d({2, -1}), dx(6), dy(6), cross(6);
  launch(key_of<T>("dot"), PairArgs{x.in(), y.in(), {}, {}, {}, {}, out.out(), {}, {}, 2, 3, 0, 0});
  EXPECT_EQ(out.values(), (Values{5, 17}));
  launch(key_of<T>("dot_grad"), PairArgs{x.in(), y.in(), d.in(), {}, {}, {}, dx.out(), dy.out(), {}, 2, 3, 0, 0});
  EXPECT_EQ(dx.values(), (Values{4, 0, 2, -1, 1, -3}));
  EXPECT_EQ(dy.values(), (Values{2, 4, 6, -4, -5, -6}));
  launch(key_of<T>("cross"), PairArgs{x.in(), y.in(), {}, {}, {}, {}, cross.out(), {}, {}, 2, 1, 0, 0});
  EXPECT_EQ(cross.values(), (Values{2, 5, -4, 21, -6, -9}));
}

}  // namespace
}  // namespace anabranch::device
