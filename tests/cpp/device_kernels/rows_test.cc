// Softmax, cross entropies, norms of rows, and losses of every element.
#include "host_kernels.h"
#include "ops/device/args_rows.h"

namespace anabranch::device {
namespace {

template <class T> class DeviceRows : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceRows, Floats);

struct Classes {
  size_t outer, classes, inner;
  size_t n() const { return outer * classes * inner; }
  size_t samples() const { return outer * inner; }
  size_t at(size_t sample, size_t k) const { return (sample / inner * classes + k) * inner + sample % inner; }
  template <class Fn> void each(Fn&& fn) const {
    for (size_t s = 0; s < samples(); ++s) fn(s);
  }
  ClassArgs args() const {
    ClassArgs a = {};
    a.outer = static_cast<int64_t>(outer), a.classes = static_cast<int64_t>(classes);
    a.inner = static_cast<int64_t>(inner), a.ignored = -100;
    return a;
  }
};

const Classes kShapes[] = {{4, 5, 1},   {2, 3, 4},   {1, 700, 1}, {0, 3, 1},    {5, 7, 1},   {3, 128, 1},
                           {2, 128, 2}, {3, 130, 1}, {2, 264, 1}, {2, 1024, 1}, {2, 1032, 1}};

std::vector<double> softmax_of(const Classes& c, const std::vector<double>& x) {
  std::vector<double> p(x.size());
  c.each([&](size_t s) {
    double top = -INFINITY, sum = 0;
    for (size_t k = 0; k < c.classes; ++k) top = std::max(top, x[c.at(s, k)]);
    for (size_t k = 0; k < c.classes; ++k) sum += p[c.at(s, k)] = std::exp(std::max(x[c.at(s, k)] - top, -64.0));
    for (size_t k = 0; k < c.classes; ++k) p[c.at(s, k)] /= sum;
  });
  return p;
}

TYPED_TEST(DeviceRows, SoftmaxAndItsLogarithm) {
  using T = TypeParam;
  for (const Classes& c : kShapes) {
    const auto xs = held<T>(random_values(c.n(), -3, 3)), ds = held<T>(random_values(c.n(), -1, 1, 2));
    const auto p = softmax_of(c, xs);
    Array<T> x(xs), y(c.n()), log(c.n()), d(ds), dx(c.n());
    ClassArgs a = c.args();
    a.x = x.in(), a.y = log.out();
    launch(key_of<T>("log_softmax"), a);
    a.y = x.out();  // in place
    launch(key_of<T>("softmax"), a);
    expect_all(x, p, "softmax", 4);
    std::vector<double> logs, slope(c.n()), log_slope(c.n());
    for (double v : p) logs.push_back(std::log(v));
    expect_all(log, logs, "log_softmax", 4);
    c.each([&](size_t s) {
      double dot = 0, sum = 0;
      for (size_t k = 0; k < c.classes; ++k) dot += ds[c.at(s, k)] * x[c.at(s, k)], sum += ds[c.at(s, k)];
      for (size_t k = 0; k < c.classes; ++k) {
        const size_t i = c.at(s, k);
        slope[i] = x[i] * (ds[i] - dot), log_slope[i] = ds[i] - std::exp(log[i]) * sum;
      }
    });
    a.x = x.in(), a.dy = d.in(), a.y = dx.out();
    launch(key_of<T>("softmax_grad"), a);
    expect_all(dx, slope, "softmax_grad", 8);
    a.x = log.in();
    launch(key_of<T>("log_softmax_grad"), a);
    expect_all(dx, log_slope, "log_softmax_grad", 20);
  }
}

// A row gives the same bits wherever it lies, by itself and with others; rows of infinities and of NaN
// are told apart from those that have a softmax.
TYPED_TEST(DeviceRows, SoftmaxOfRowsThatLanesHold) {
  using T = TypeParam;
  for (const size_t width : {4u, 7u, 128u, 130u, 136u, 512u, 520u, 1024u, 1032u}) {
    const Classes c{6, width, 1}, one{1, width, 1};
    auto xs = held<T>(random_values(c.n(), -3, 3));
    const auto ds = held<T>(random_values(c.n(), -1, 1, 2));
    for (size_t k = 0; k < width; ++k) xs[width + k] = -INFINITY;
    xs[2 * width + width - 1] = NAN, xs[3 * width] = INFINITY, xs[4 * width + width / 2] = -INFINITY;
    Array<T> x(xs), y(c.n()), alone(width), apart(c.n() + 1), d(ds), dx(c.n()), x_apart(c.n() + 1), d_apart(c.n() + 1);
    for (size_t i = 0; i < c.n(); ++i) x_apart.at(i + 1) = x.at(i), d_apart.at(i + 1) = d.at(i);
    for (const std::string op : {"softmax", "log_softmax"}) {
      ClassArgs a = c.args();
      a.x = x.in(), a.y = y.out();
      launch(key_of<T>(op), a);
      expect_lanes<T>(6, static_cast<int64_t>(width));
      for (size_t i = 0; i < c.n(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), i / width >= 1 && i / width <= 3) << op << " of " << width << " at " << i;
      }
      a.x = in_from(x_apart, 1), a.y = out_from(apart, 1);
      launch(key_of<T>(op), a);
      expect_same_bits(apart, y, op + " where no pack starts", 1);
      a.x = x.in(), a.dy = d.in(), a.y = dx.out();
      launch(key_of<T>(op + "_grad"), a);
      expect_lanes<T>(6, static_cast<int64_t>(width));
      a.x = in_from(x_apart, 1), a.dy = in_from(d_apart, 1), a.y = out_from(apart, 1);
      launch(key_of<T>(op + "_grad"), a);
      expect_same_bits(apart, dx, op + "_grad where no pack starts", 1);
      a = one.args(), a.x = {&x.at(5 * width), width * sizeof(T)}, a.y = alone.out();
      launch(key_of<T>(op), a);
      EXPECT_EQ(memcmp(&alone.at(0), &y.at(5 * width), width * sizeof(T)), 0) << op << " of one row of " << width;
    }
  }
}

TEST(DeviceSoftmax, IsLimitedFromBelowAndKeepsNan) {
  Array<double> x({0, -1000, NAN, 1}), y(4);
  ClassArgs a = Classes{2, 2, 1}.args();
  a.x = x.in(), a.y = y.out();
  launch("softmax/f64", a);
  EXPECT_NEAR(y[1], std::exp(-64.0), 1e-40);
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
}

TYPED_TEST(DeviceRows, CrossEntropies) {
  using T = TypeParam;
  for (const Classes& c : kShapes) {
    const auto xs = held<T>(random_values(c.n(), -3, 3)), gs = held<T>(random_values(c.samples(), -1, 1, 2));
    const auto p = softmax_of(c, xs);
    std::vector<double> labels, loss, slope(c.n()), of_p, match, p_slope(c.n());
    Array<T> x(xs), softmax(c.n()), out(c.samples()), g(gs), dx(c.n()), given(p), kept(c.samples());
    c.each([&](size_t s) {
      const bool ignored = s % 4 == 3;
      const size_t own = s % c.classes, at = c.at(s, own);
      labels.push_back(ignored ? -100 : static_cast<double>(own));
      loss.push_back(ignored ? 0 : -std::log(p[at]));
      of_p.push_back(ignored ? 0 : -std::log(given[at]));
      match.push_back(ignored ? 1 : given[at]);
      if (!ignored) p_slope[at] = -gs[s] / given[at];
    });
    Array<int64_t> label(labels), word(1);
    ClassArgs a = c.args();
    a.x = x.in(), a.label = label.in(), a.y = softmax.out(), a.loss = out.out(), a.fault = sink_of(word);
    launch(key_of<T>("softmax_cross_entropy") + "/i64", a);
    expect_all(softmax, p, "softmax", 4);
    expect_all(out, loss, "loss", 4);
    EXPECT_FALSE(faulted(word));
    c.each([&](size_t s) {
      for (size_t k = 0; k < c.classes && labels[s] >= 0; ++k) {
        slope[c.at(s, k)] = (softmax[c.at(s, k)] - (labels[s] == static_cast<double>(k))) * gs[s];
      }
    });
    a.x = softmax.in(), a.dy = g.in(), a.y = dx.out(), a.flags = kIgnoredHaveNoGradient;
    launch(key_of<T>("softmax_cross_entropy_grad") + "/i64", a);
    expect_all(dx, slope, "gradient", 4);
    a.x = given.in(), a.y = out.out(), a.loss = kept.out();
    launch(key_of<T>("cross_entropy") + "/i64", a);
    expect_all(out, of_p, "cross entropy of probabilities", 4);
    expect_all(kept, match, "MatchX");
    a.y = dx.out();
    launch(key_of<T>("cross_entropy_grad") + "/i64", a);
    expect_all(dx, p_slope, "its gradient", 4);
    a.x = {}, a.own = kept.in();
    launch(key_of<T>("cross_entropy_grad") + "/i64", a);
    expect_all(dx, p_slope, "its gradient from MatchX", 4);
  }
}

TYPED_TEST(DeviceRows, SoftLabels) {
  using T = TypeParam;
  const Classes c{3, 4, 2};
  const auto xs = held<T>(random_values(c.n(), -2, 2)), ls = held<T>(random_values(c.n(), 0, 1, 2));
  const auto p = softmax_of(c, xs);
  Array<T> x(xs), label(ls), softmax(c.n()), out(c.samples()), g(std::vector<double>(c.samples(), 2)), dx(c.n());
  std::vector<double> loss(c.samples()), slope(c.n());
  c.each([&](size_t s) {
    for (size_t k = 0; k < c.classes; ++k) loss[s] -= ls[c.at(s, k)] * std::log(p[c.at(s, k)]);
  });
  const std::string types = key_of<T>("") + key_of<T>("");
  ClassArgs a = c.args();
  a.x = x.in(), a.label = label.in(), a.y = softmax.out(), a.loss = out.out();
  launch("softmax_cross_entropy" + types, a);
  expect_all(out, loss, "loss", 4);
  for (size_t i = 0; i < c.n(); ++i) slope[i] = (softmax[i] - ls[i]) * 2;
  a.x = softmax.in(), a.dy = g.in(), a.y = dx.out();
  launch("softmax_cross_entropy_grad" + types, a);
  expect_all(dx, slope, "gradient", 4);
  a.x = softmax.in(), a.y = out.out();
  launch("cross_entropy" + types, a);
  expect_all(out, loss, "of probabilities", 8);
}

TEST(DeviceLabels, OutsideOfTheClassesAreReported) {
  Array<float> x({1, 2, 3, 4}), y(4), loss(2);
  Array<int32_t> label({1, 2});
  Array<int64_t> word(1);
  ClassArgs a = Classes{2, 2, 1}.args();
  a.x = x.in(), a.label = label.in(), a.y = y.out(), a.loss = loss.out(), a.fault = sink_of(word);
  launch("softmax_cross_entropy/f32/i32", a);
  EXPECT_EQ(fault_of(word).detail, 1);
  EXPECT_EQ(loss[1], 0);
}

}  // namespace
}  // namespace anabranch::device
