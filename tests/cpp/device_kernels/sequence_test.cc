// Pooling of sequences, and the rows around rows.
#include "host_kernels.h"
#include "ops/device/args_sequence.h"

namespace anabranch::device {
namespace {

template <class T> class DeviceSequences : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceSequences, Floats);

TYPED_TEST(DeviceSequences, Pools) {
  using T = TypeParam;
  Array<T> x({1, 8, 3, 2, 5, 6}), y(6), d({1, 2, 3, 4, 5, 6}), dx(6);  // rows of two: one, none, two sequences
  Array<int64_t> offsets({0, 1, 1, 3});
  Array<int32_t> index(6);
  struct Case {
    int32_t mode;
    std::vector<double> out, slope;
  };
  const double r = std::sqrt(2.0);
  const Case cases[] = {{kPoolSum, {1, 8, 9, 9, 8, 8}, {1, 2, 5, 6, 5, 6}},
                        {kPoolAverage, {1, 8, 9, 9, 4, 4}, {1, 2, 2.5, 3, 2.5, 3}},
                        {kPoolSqrt, {1, 8, 9, 9, 8 / r, 8 / r}, {1, 2, 5 / r, 6 / r, 5 / r, 6 / r}},
                        {kPoolMax, {1, 8, 9, 9, 5, 6}, {1, 2, 0, 0, 5, 6}},
                        {kPoolFirst, {1, 8, 9, 9, 3, 2}, {1, 2, 5, 6, 0, 0}},
                        {kPoolLast, {1, 8, 9, 9, 5, 6}, {1, 2, 0, 0, 5, 6}}};
  for (const Case& c : cases) {
    const DeviceOut places = c.mode == kPoolMax ? index.out() : DeviceOut{};
    launch(key_of<T>("sequence_pool"),
           SequencePoolArgs{x.in(), offsets.in(), {}, y.out(), places, 3, 3, 2, 9, c.mode, 0});
    expect_all(y, c.out, "pool", 2);
    launch(key_of<T>("sequence_pool_grad"),
           SequencePoolArgs{d.in(), offsets.in(), index.in(), dx.out(), {}, 3, 3, 2, 0, c.mode, 0});
    expect_all(dx, c.slope, "its gradient", 2);
  }
  EXPECT_EQ(index.values(), (std::vector<double>{0, 0, -1, -1, 2, 2}));
}

TYPED_TEST(DeviceSequences, RowsAroundRows) {
  using T = TypeParam;
  Array<T> x({1, 2, 3, 4, 5}), columns(15);  // sequences of 3 and 2 rows of one number
  Array<int64_t> offsets({0, 3, 5});
  launch(key_of<T>("context"), ContextArgs{x.in(), offsets.in(), {}, columns.out(), {}, 2, 5, 1, 3, -1});
  EXPECT_EQ(columns.values(), (std::vector<double>{0, 1, 2, 1, 2, 3, 2, 3, 0, 0, 4, 5, 4, 5, 0}));
  Array<T> padding({-7, 9});
  launch(key_of<T>("context"), ContextArgs{x.in(), offsets.in(), padding.in(), columns.out(), {}, 2, 5, 1, 3, -1});
  EXPECT_EQ(columns.values(), (std::vector<double>{-7, 1, 2, 1, 2, 3, 2, 3, 9, -7, 4, 5, 4, 5, 9}));
}

// <d, context(x, padding)> = <dx, x> + <dpadding, padding>, for windows that reach beyond short sequences, too.
TEST(DeviceContext, GradientsAreAdjoint) {
  for (const int64_t start : {-3, -1, 0, 2}) {
    constexpr int64_t kLength = 4, kWidth = 3;
    const int64_t pads = std::max<int64_t>(0, -start) + std::max<int64_t>(0, start + kLength - 1);
    const auto xs = random_values(7 * kWidth, -1, 1), ps = random_values(static_cast<size_t>(pads * kWidth), -1, 1, 2);
    const auto ds = random_values(7 * kLength * kWidth, -1, 1, 3);
    Array<double> x(xs), padding(ps), columns(ds.size()), d(ds), dx(xs.size()), dpadding(ps.size());
    Array<int64_t> offsets({0, 4, 4, 5, 7});
    launch("context/f64",
           ContextArgs{x.in(), offsets.in(), padding.in(), columns.out(), {}, 4, 7, kWidth, kLength, start});
    launch("context_grad/f64",
           ContextArgs{d.in(), offsets.in(), {}, dx.out(), dpadding.out(), 4, 7, kWidth, kLength, start});
    double forward = 0, backward = 0;
    for (size_t i = 0; i < ds.size(); ++i) forward += ds[i] * columns[i];
    for (size_t i = 0; i < xs.size(); ++i) backward += xs[i] * dx[i];
    for (size_t i = 0; i < ps.size(); ++i) backward += ps[i] * dpadding[i];
    EXPECT_NEAR(forward, backward, 1e-12) << start;
  }
}

}  // namespace
}  // namespace anabranch::device
