// Rows of many lanes on the simulated device: the defects of faulty_kernels.cu are found, and results have the bits of
// a GPU's order.

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <set>

#include "harness.h"

extern "C" [[gnu::weak]] void __tsan_init();

namespace anabranch::device {
namespace {

class SimdeviceLanes : public testing::Test {
  void SetUp() override {
    if (__tsan_init) GTEST_SKIP() << "rows have one lane under ThreadSanitizer";
  }
};

constexpr int32_t kRight = 1;
constexpr size_t kMuch = 5000;  // floats: too many for the check of which lane writes which element

std::vector<Flags> seeds(const std::string& lanes = "1") {
  std::vector<Flags> all;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    all.push_back(seeded(seed));
    all.back()["simdevice_lanes"] = lanes;
  }
  return all;
}

std::vector<float> counting(size_t n) {
  std::vector<float> all(n);
  for (size_t i = 0; i < n; ++i) all[i] = static_cast<float>(i + 1);
  return all;
}

class Rows {
 public:
  Rows(const Flags& flags, int64_t rows, int64_t width) : sim(flags), queue(sim.queue("compute")) {
    args.rows = rows;
    args.width = width;
  }

  DeviceIn in(const std::vector<float>& values) {
    float* host = sim.pinned(values.size());
    std::copy(values.begin(), values.end(), host);
    float* x = sim.floats(values.size());
    const size_t bytes = values.size() * sizeof(float);
    EXPECT_EQ(api.copy(queue, x, 0, host, AB_HOST_MEMORY, bytes), AB_OK) << last_error();
    return {x, bytes};
  }
  DeviceOut out(size_t n) {
    float* y = sim.floats(n);
    EXPECT_EQ(api.fill(queue, y, 0, n * sizeof(float)), AB_OK) << last_error();
    return {y, n * sizeof(float)};
  }
  int run(const char* key) {
    const int status = api.launch(queue, kernel(key), &args, sizeof args, nullptr, 0);
    return status ? status : sim.finish(queue);
  }
  std::vector<float> read(const DeviceOut& y) {
    return sim.read(static_cast<float*>(y.address), y.bytes / sizeof(float));
  }

  Sim sim;
  ab_queue* const queue;
  RowArgs args{};
};

std::vector<float> unsynced(const Flags& flags, int64_t width, int32_t how) {
  Rows rows(flags, 2, width);
  const auto n = static_cast<size_t>(2 * width);
  rows.args.x[0] = rows.in(counting(n));
  rows.args.y[0] = rows.out(n);
  rows.args.y[1] = rows.out(n);
  rows.args.flags = how;
  EXPECT_EQ(rows.run("test/unsynced/f32"), AB_OK) << last_error();
  return rows.read(rows.args.y[1]);
}

TEST_F(SimdeviceLanes, AMissingSyncIsAWrongValue) {
  for (const int64_t width : {40, 700}) {
    std::vector<float> expected = counting(static_cast<size_t>(2 * width));
    std::rotate(expected.begin(), expected.begin() + 1, expected.begin() + width);
    std::rotate(expected.begin() + width, expected.begin() + width + 1, expected.end());
    for (const Flags& flags : seeds()) {
      EXPECT_EQ(unsynced(flags, width, kRight), expected);
      EXPECT_NE(unsynced(flags, width, 0), expected) << "seed " << flags.at("simdevice_seed");
    }
    EXPECT_EQ(unsynced(seeds("0")[0], width, 0), expected) << "one lane does not show it";
  }
}

TEST_F(SimdeviceLanes, AGuardLeftOutIsAWrongValueOrNamed) {
  const auto run = [](const Flags& flags, size_t memory, int32_t how) {
    Rows rows(flags, 1, 600);
    rows.args.x[0] = rows.in(std::vector<float>(600, 1));
    rows.args.y[0] = rows.out(memory);
    rows.args.flags = how;
    const int status = rows.run("test/unguarded/f32");
    return status ? last_error() : std::to_string(rows.read(rows.args.y[0])[0]);
  };
  for (const Flags& flags : seeds()) {
    EXPECT_EQ(run(flags, 1, kRight), "600.000000");
    EXPECT_THAT(run(flags, 1, 0), testing::HasSubstr("of 4 in row 0, without a sync between the writes"));
    EXPECT_EQ(run(flags, kMuch, 0), std::to_string(256.0f * 600));
  }
}

TEST_F(SimdeviceLanes, LanesThatDoNotMeetAreNamed) {
  const auto run = [](const Flags& flags, int64_t width, int32_t how) {
    Rows rows(flags, 1, width);
    rows.args.y[0] = rows.out(1);
    rows.args.flags = how;
    const int status = rows.run("test/divergent/f32");
    return status ? last_error() : std::to_string(rows.read(rows.args.y[0])[0]);
  };
  using testing::AllOf;
  using testing::HasSubstr;
  const std::string start = "lanes of test/divergent/f32 disagree in row 0: lane 3 ";
  for (const Flags& flags : seeds()) {
    for (const int64_t width : {8, 513}) {
      EXPECT_THAT(run(flags, width, 2), HasSubstr(start + "has ended, lane 0 calls sum (faulty_kernels.cu:"));
      EXPECT_THAT(run(flags, width, 3), AllOf(HasSubstr(start + "calls max ("), HasSubstr(", lane 0 calls sum (")));
      EXPECT_THAT(run(flags, width, 4), AllOf(HasSubstr(start + "calls sum ("), HasSubstr(", lane 0 calls sum (")));
      EXPECT_THAT(run(flags, width, 5), AllOf(HasSubstr(start + "calls sync ("), HasSubstr(", lane 0 has ended")));
      EXPECT_THAT(run(flags, width, 6), HasSubstr("lane 3 throws"));
      EXPECT_EQ(run(flags, width, kRight), width == 8 ? "32.000000" : "256.000000") << "lanes start again";
    }
  }
}

TEST_F(SimdeviceLanes, ElementsThatReadEachOtherAreWrong) {
  for (const Flags& flags : seeds()) {
    Rows rows(flags, 1, 300);
    MapArgs args{rows.in(std::vector<float>(300, 1)), rows.out(300), 300, {}};
    AB_WELL(api.launch(rows.queue, kernel("test/ordered/f32"), &args, sizeof args, nullptr, 0));
    AB_WELL(rows.sim.finish(rows.queue));
    const bool in_order = rows.read(args.y) == counting(300);
    EXPECT_FALSE(in_order) << "seed " << flags.at("simdevice_seed");
  }
}

TEST_F(SimdeviceLanes, WritesToTheSameElementAreNamed) {
  const auto run = [](const Flags& flags, double places, bool lanes) {
    Rows rows(flags, 1, 1);
    MapArgs args{rows.in(std::vector<float>(64, 1)), rows.out(64), 64, {places, lanes ? 1.0 : 0.0}};
    const int status = api.launch(rows.queue, kernel("test/scattered/f32"), &args, sizeof args, nullptr, 0);
    EXPECT_EQ(status, AB_OK) << last_error();
    return rows.sim.finish(rows.queue) ? last_error() : "";
  };
  for (const Flags& flags : seeds()) {
    for (const bool lanes : {false, true}) EXPECT_EQ(run(flags, 64, lanes), "");
    EXPECT_THAT(run(flags, 63, false), testing::ContainsRegex("elements or rows (0 and 63|63 and 0) of "
                                                              "test/scattered/f32 write byte [0-9]+ of 256"));
    EXPECT_THAT(run(flags, 32, true), testing::ContainsRegex("elements or rows (0 and 1|1 and 0) of "));
    EXPECT_THAT(run(flags, 31, true), testing::ContainsRegex("lanes (0 and 31|31 and 0) of test/scattered/f32 write "
                                                             "byte [0-9]+ of 256 in row [01], without a sync"));
  }
  EXPECT_EQ(run(seeds("0")[0], 31, true), "") << "one lane does not show it";
}

// The code of WarpLanes and BlockLanes, lane by lane.
using Warp = std::array<float, 32>;

float sum_of(Warp x) {
  for (size_t apart = 16; apart; apart /= 2) {
    const Warp before = x;
    for (size_t lane = 0; lane < 32; ++lane) x[lane] = before[lane] + before[lane ^ apart];
  }
  return x[0];
}

Warp upto_of(Warp x) {
  for (size_t apart = 1; apart < 32; apart *= 2) {
    const Warp before = x;
    for (size_t lane = apart; lane < 32; ++lane) x[lane] = before[lane - apart] + before[lane];
  }
  return x;
}

struct Expected {  // of a row of one warp or several
  explicit Expected(const std::vector<float>& x) : before(x.size()) {
    const bool alone = x.size() == 32;
    for (size_t first = 0; first < x.size(); first += 32) {
      Warp own{};
      std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(first), 32, own.begin());
      const Warp upto = upto_of(own);
      sum = first ? sum + sum_of(own) : sum_of(own);
      for (size_t lane = 0; lane < 32; ++lane) {
        const float within = lane ? upto[lane - 1] : 0;
        before[first + lane] = alone ? within : total + within;
      }
      total = alone ? upto[31] : total + upto[31];
    }
  }
  float sum = 0, total = 0;
  std::vector<float> before;
};

TEST_F(SimdeviceLanes, ResultsHaveTheBitsOfAGpusOrder) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (const size_t count : {32, 256}) {
    std::vector<float> x(3 * count);
    for (float& v : x) v = draw(random) * (random() % 4 ? 1.0f : 1e4f);
    for (const Flags& flags : seeds()) {
      Rows rows(flags, 3, count == 32 ? 512 : 513);
      rows.args.x[0] = rows.in(x);
      rows.args.y[0] = rows.out(5 * x.size());
      AB_WELL(rows.run("test/collectives/f32"));
      const std::vector<float> y = rows.read(rows.args.y[0]);
      for (size_t row = 0; row < 3; ++row) {
        const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * count);
        const std::vector<float> own(first, first + static_cast<std::ptrdiff_t>(count));
        const Expected expected(own);
        EXPECT_NE(expected.sum, std::accumulate(own.begin(), own.end(), 0.0f)) << "the order of the sum shows";
        for (size_t lane = 0; lane < count; ++lane) {
          const float* got = &y[(row * count + lane) * 5];
          EXPECT_EQ(got[0], expected.sum);
          EXPECT_EQ(got[1], expected.before[lane]);
          EXPECT_EQ(got[2], expected.total);
          EXPECT_EQ(got[3], *std::max_element(own.begin(), own.end()));
          EXPECT_EQ(got[4], 1);
        }
      }
    }
  }
}

TEST_F(SimdeviceLanes, SeedsChooseTheOrderOfRowsAndLanes) {
  std::set<std::vector<float>> orders;
  for (const Flags& flags : seeds()) {
    std::vector<float> order;
    for (int again = 0; again < 2; ++again) {
      Rows rows(flags, 4, 1);
      rows.args.x[0] = rows.in(counting(128));
      rows.args.y[0] = rows.out(5 * 128);
      rows.args.y[1] = rows.out(kMuch);  // lanes write it one after another
      AB_WELL(scale(rows.queue, nullptr, static_cast<float*>(rows.args.y[1].address), 1, 0, 1));
      AB_WELL(rows.run("test/collectives/f32"));
      std::vector<float> got = rows.read(rows.args.y[1]);
      EXPECT_EQ(got[0], 129);
      got = std::vector<float>(got.begin() + 1, got.begin() + 129);
      if (!again) order = got;
      EXPECT_EQ(got, order) << "one seed, one order";
      std::sort(got.begin(), got.end());
      for (size_t i = 0; i < 128; ++i) EXPECT_EQ(got[i], static_cast<float>(i)) << "each lane of each row once";
    }
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 10u);
}

}  // namespace
}  // namespace anabranch::device
