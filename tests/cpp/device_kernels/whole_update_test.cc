// Rules that need norms of whole parameters, and sums of parameters over steps.
#include "host_kernels.h"
#include "ops/device/args_update.h"

namespace anabranch::device {
namespace {

template <class T> class DeviceWholeUpdate : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceWholeUpdate, RealFloats);

TYPED_TEST(DeviceWholeUpdate, NormsOfWholeParameters) {
  using T = TypeParam;
  constexpr size_t n = 9000;  // in chunks
  const auto ps = held<T>(random_values(n, -1, 1)), gs = held<T>(random_values(n, -1, 1, 2));
  const auto norm = [](const std::vector<double>& v) {
    double sum = 0;
    for (double x : v) sum += x * x;
    return std::sqrt(sum);
  };
  Array<T> p(ps), g(gs), v(n), rate(std::vector<double>{Array<T>::number(Array<T>::of(0.1))});
  UpdateArgs args = {};
  args.param = p.out(), args.state[0] = v.out(), args.grad = g.in(), args.rate = rate.in(), args.n = n;
  args.p[0] = 0.9, args.p[1] = 0.01, args.p[2] = 0.1;
  launch(key_of<T>("update/lars_momentum"), args);
  const double local = rate[0] * 0.01 * norm(ps) / (norm(gs) + 0.1 * norm(ps));
  std::vector<double> expected, steps, moved;
  for (size_t i = 0; i < n; ++i) expected.push_back(ps[i] - local * (gs[i] + 0.1 * ps[i]));
  expect_all(p, expected, "lars", 4);
  Array<T> q(ps), m1(n), m2(n), y(n);
  args.param = q.out(), args.state[0] = m1.out(), args.state[1] = m2.out();
  args.p[0] = 0.9, args.p[1] = 0.99, args.p[2] = 1e-3, args.p[3] = 0.1;
  launch(key_of<T>("update/lamb"), args);
  for (size_t i = 0; i < n; ++i) {
    steps.push_back(0.1 * gs[i] / (std::sqrt(0.01 * gs[i] * gs[i]) + 1e-3) + 0.1 * ps[i]);
  }
  for (size_t i = 0; i < n; ++i) moved.push_back(ps[i] - rate[0] * norm(ps) / norm(steps) * steps[i]);
  expect_all(q, moved, "lamb", 20);
  launch(key_of<T>("clip_by_norm"), MapArgs{g.in(), y.out(), n, {2}});
  for (size_t i = 0; i < n; ++i) expected[i] = gs[i] * 2 / norm(gs);
  expect_all(y, expected, "clip_by_norm", 4);
}

TEST(DeviceAverage, SumsMoveWhenTheWindowIsFull) {
  Array<float> p({1, 2}), s1({10, 20}), s2({100, 200}), s3({0, 0});
  Array<int64_t> now(std::vector<double>{3}), before(std::vector<double>{0}), steps(std::vector<double>{16382});
  const AverageArgs args = {p.in(), {s1.out(), s2.out(), s3.out()}, {now.out(), before.out(), steps.out()}, 2, 2, 6,
                            {1}};
  launch("average_accumulates/f32", args);
  EXPECT_EQ(s1[0], 11);
  EXPECT_EQ(now[0], 4);
  launch("average_accumulates/f32", args);  // step 16384
  EXPECT_EQ(s1[0], 0);
  EXPECT_EQ(s2[1], 224);
  EXPECT_EQ(s3[0], 0);
  launch("average_accumulates/f32", args);  // six summands
  EXPECT_EQ(s3.values(), (std::vector<double>{113, 226}));
  EXPECT_EQ(s2[0], 0);
  EXPECT_EQ(before[0], 6);
  EXPECT_EQ(now[0], 0);
}

}  // namespace
}  // namespace anabranch::device
