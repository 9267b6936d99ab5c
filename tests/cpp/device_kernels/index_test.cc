// Rows and elements by ids: what is picked, what comes back, and ids that are not allowed.
#include "host_kernels.h"
#include "ops/device/args_index.h"

namespace anabranch::device {
namespace {

struct Grouped {
  Array<int32_t> ids;
  Array<int64_t> rows, starts, count, word;
  Array<int32_t> order;
  Grouped(const std::vector<double>& of, int64_t height)
      : ids(of), rows(of.size()), starts(of.size() + 1), count(1), word(1), order(of.size()) {
    launch("group_rows/i32", GroupRowsArgs{ids.in(), rows.out(), starts.out(), order.out(), count.out(), sink_of(word),
                                           static_cast<int64_t>(of.size()), height});
  }
  RowGroups groups() const { return {rows.in(), starts.in(), order.in(), count.in()}; }
};

TEST(DeviceGroups, EqualIdsInTheOrderInWhichTheyStand) {
  Grouped g({4, 1, 4, -1, 0, 1, 4, -1}, 5);
  EXPECT_EQ(g.count[0], 3);
  EXPECT_EQ(g.rows[0], 0);
  EXPECT_EQ(g.rows[1], 1);
  EXPECT_EQ(g.rows[2], 4);
  const std::vector<double> starts = {0, 1, 3, 6}, order = {4, 1, 5, 0, 2, 6};
  for (size_t i = 0; i < starts.size(); ++i) EXPECT_EQ(g.starts[i], starts[i]);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(g.order[i], order[i]);
  EXPECT_FALSE(faulted(g.word));
}

TEST(DeviceGroups, NothingAllPadsAndIdsThatAreNotAllowed) {
  Grouped none({}, 5), pads({-1, -1}, 5), wrong({2, 5, -3, 2}, 5);
  EXPECT_EQ(none.count[0], 0);
  EXPECT_EQ(none.starts[0], 0);
  EXPECT_EQ(pads.count[0], 0);
  EXPECT_FALSE(faulted(pads.word));
  EXPECT_EQ(wrong.count[0], 1);
  EXPECT_EQ(wrong.starts[1], 2);
  EXPECT_EQ(fault_of(wrong.word).detail, 1);  // the first of two
}

template <class T> class DeviceIndex : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceIndex, Floats);

TYPED_TEST(DeviceIndex, RowsAddedSummedAndReplaced) {
  using T = TypeParam;
  const std::vector<double> ids = {2, 0, 2, 2, 3};
  const auto xs = held<T>(random_values(10, -1, 1)), ys = held<T>(random_values(8, -1, 1, 2));
  Grouped g(ids, 4);
  const auto run = [&](ScatterMode mode, int64_t skipped, auto&& step) {
    Array<T> x(xs), y(ys);
    std::vector<double> expected = ys;
    std::vector<bool> seen(4);
    for (size_t k = 0; k < ids.size(); ++k) {
      const auto row = static_cast<size_t>(ids[k]);
      if (ids[k] == static_cast<double>(skipped)) continue;
      for (size_t j = 0; j < 2; ++j) step(expected[row * 2 + j], xs[k * 2 + j], !seen[row]);
      seen[row] = true;
    }
    launch(key_of<T>("scatter"), ScatterArgs{x.in(), y.out(), g.groups(), 5, 2, skipped, mode, 0});
    expect_all(y, expected, "scatter", 4);
  };
  run(kScatterAdd, -1, [](double& to, double v, bool) { to += v; });
  run(kScatterAdd, 2, [](double& to, double v, bool) { to += v; });
  run(kScatterSum, -1, [](double& to, double v, bool first) { to = first ? v : to + v; });
  run(kScatterReplace, -1, [](double& to, double v, bool) { to = v; });
}

TYPED_TEST(DeviceIndex, MergedRows) {
  using T = TypeParam;
  Grouped g({2, -1, 0, 2}, 4);
  Array<T> x({1, 2, 9, 9, 3, 4, 5, 6}), y(8);
  Array<int64_t> rows(4);
  launch(key_of<T>("merge_rows"), MergeRowsArgs{x.in(), y.out(), rows.out(), g.groups(), 4, 2});
  EXPECT_EQ(y.values(), (std::vector<double>{3, 4, 6, 8, 0, 0, 0, 0}));
  EXPECT_EQ(rows.values(), (std::vector<double>{0, 2, -1, -1}));
}

TYPED_TEST(DeviceIndex, SlicesAndTheirGradients) {
  using T = TypeParam;
  Array<T> x({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), d({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), dx(12);
  Array<int64_t> ids({2, 0, 2});
  launch(key_of<T>("pick_grad") + "/i64", PickArgs{d.in(), ids.in(), dx.out(), {}, 2, 3, 2, 3, 0, 0});
  EXPECT_EQ(dx.values(), (std::vector<double>{3, 4, 0, 0, 6, 8, 9, 10, 0, 0, 18, 20}));
  Array<int64_t> own({1, 1, 0, 2});
  launch(key_of<T>("pick_grad") + "/i64", PickArgs{d.in(), own.in(), dx.out(), {}, 2, 3, 1, 2, 1, 0});
  for (size_t i = 0; const double expected : {0.0, 3.0, 0.0, 3.0, 0.0, 4.0}) EXPECT_EQ(dx[i++], expected);
}

TEST(DevicePick, RowsPaddingAndFaults) {
  Array<float> table({1, 2, 3, 4, 5, 6}), y(8);
  Array<int64_t> ids({2, 0, 1, 2}), word(1);
  launch("gather/i32/i64", IndexArgs{table.in(), ids.in(), y.out(), sink_of(word), 4, 3, 2, 1, kHasPadding, 0});
  EXPECT_EQ(y.values(), (std::vector<double>{5, 6, 1, 2, 0, 0, 5, 6}));
  EXPECT_FALSE(faulted(word));
  ids.at(2) = 3;
  launch("gather/i32/i64", IndexArgs{table.in(), ids.in(), y.out(), sink_of(word), 4, 3, 2, -1, 0, 0});
  EXPECT_EQ(fault_of(word).detail, 2);
  EXPECT_EQ(y[4], 0);
  Array<uint8_t> wide({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), picked(8);
  Array<int32_t> two({2, 0});
  launch("pick/u8/i32", PickArgs{wide.in(), two.in(), picked.out(), sink_of(word), 2, 3, 2, 2, 0, 0});
  EXPECT_EQ(picked.values(), (std::vector<double>{5, 6, 1, 2, 11, 12, 7, 8}));
}

TEST(DevicePick, PositionsMultiplexAndShards) {
  Array<int32_t> ids({1, 2, 0, 1, 3, 0});
  Array<int64_t> at(3), word(1);
  launch("positions/i32", PositionsArgs{ids.in(), at.out(), sink_of(word), 3, {2, 3}, 2, 0});
  EXPECT_EQ(at[0], 5);
  EXPECT_EQ(at[1], 1);
  EXPECT_EQ(fault_of(word).detail, 4);
  Array<double> a({1, 2, 3, 4}), b({10, 20, 30, 40}), y(4), dx(4);
  Array<int64_t> choice({1, 0});
  launch("multiplex/i64/i64", MultiplexArgs{{a.in(), b.in()}, choice.in(), y.out(), {}, 2, 2, 2, 0});
  EXPECT_EQ(y.values(), (std::vector<double>{10, 20, 3, 4}));
  launch("multiplex_grad/i64/i64", MultiplexArgs{{y.in()}, choice.in(), dx.out(), {}, 2, 2, 2, 1});
  EXPECT_EQ(dx.values(), (std::vector<double>{10, 20, 0, 0}));
  Array<int64_t> all({0, 5, 19, 20}), part(4);
  launch("shard_index/i64", ShardIndexArgs{all.in(), part.out(), sink_of(word), 4, 20, 10, 1, -1});
  EXPECT_EQ(part[0], -1);
  EXPECT_EQ(part[2], 9);
  EXPECT_EQ(fault_of(word).detail, 3);
}

}  // namespace
}  // namespace anabranch::device
