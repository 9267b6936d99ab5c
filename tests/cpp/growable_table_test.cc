// Growable tables: first values, rules of updates, entry and exit of rows, the byte limit, files.
#include "sparse/growable_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

using test::Keys;
using test::options;
using test::pull;
using test::scratch_path;
using test::update;

TEST(GrowableTable, ARowsFirstValueIsAFunctionOfSeedAndKey) {
  GrowableTable a("a", options(7)), b("b", options(7));
  const Keys keys = test::random_keys(5000, 1, ~uint64_t{0});
  const auto first = pull(a, keys);
  const Keys back(keys.rbegin(), keys.rend());
  const auto second = pull(b, back, true, nullptr);
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < 7; ++j) {
      ASSERT_EQ(first[i * 7 + j], second[(keys.size() - 1 - i) * 7 + j]);
      ASSERT_TRUE(first[i * 7 + j] >= -1 && first[i * 7 + j] < 1);
    }
  }
  EXPECT_NE(std::set<float>(first.begin(), first.end()).size(), 1u);
  TableOptions other = options(7);
  other.seed = 2;
  GrowableTable c("c", other);
  EXPECT_NE(pull(c, keys), first);
}

TEST(GrowableTable, ALookupOutsideOfTrainingLeavesNothing) {
  GrowableTable table("t", options(3));
  const Keys keys = {5, -1, 0, INT64_MIN};
  EXPECT_EQ(pull(table, keys, false), std::vector<float>(12, 0.0f));
  EXPECT_EQ(table.stats().rows, 0);
  const auto rows = pull(table, keys);
  EXPECT_EQ(table.keys(), (Keys{INT64_MIN, -1, 0, 5}));
  EXPECT_EQ(pull(table, keys, false), rows);
  const TableStats s = table.stats();
  EXPECT_EQ(s.hits, 4);
  EXPECT_EQ(s.misses, 8);
  EXPECT_EQ(s.created, 4);
}

TEST(GrowableTable, ThePaddingKeyReadsAsZerosAndGetsNoRow) {
  GrowableTable table("t", options(3));
  const Keys keys = {4, -1, 5, -1};
  const int64_t padding = -1;
  std::vector<float> out(12, 9.0f);
  KeyOrder scratch;
  table.pull(keys.data(), 4, {.train = true, .padding = &padding}, out.data(), &scratch, nullptr);
  EXPECT_EQ(table.keys(), (Keys{4, 5}));
  EXPECT_EQ(std::vector<float>(out.begin() + 3, out.begin() + 6), std::vector<float>(3));
  EXPECT_EQ(table.stats().misses, 2);
}

TEST(GrowableTable, TakesOnlyTheRuleThatItsMomentsAreFor) {
  GrowableTable table("emb", options(4, RowRule::kAdagrad));
  for (const RowRule rule : test::kRules) {
    if (rule == RowRule::kAdagrad) continue;
    EXPECT_THROW(update(table, {1}, std::vector<float>(4), rule), Error) << test::name_of(rule);
  }
}

TEST(GrowableTable, HoldsWhatAMapHoldsWhileItGrows) {
  GrowableTable table("t", options(2));
  std::map<int64_t, float> model;
  for (uint64_t step = 0; step < 60; ++step) {
    const Keys keys = test::random_keys(4000, step, 150000);
    const auto rows = pull(table, keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto [at, fresh] = model.try_emplace(keys[i], rows[2 * i]);
      ASSERT_EQ(at->second, rows[2 * i]) << keys[i];
    }
  }
  const TableStats s = table.stats();
  EXPECT_EQ(s.rows, static_cast<int64_t>(model.size()));
  EXPECT_EQ(s.created, s.rows);
  Keys all;
  for (const auto& [key, value] : model) all.push_back(key);
  EXPECT_EQ(table.keys(), all);
}

TEST(GrowableTable, RowsThatAreNotSeenExpire) {
  TableOptions o = options(2);
  o.expire_after = 10;
  GrowableTable table("t", o);
  const Keys all = test::random_keys(20000, 3, ~uint64_t{0});
  const Keys kept(all.begin(), all.begin() + 3000);
  const auto before = pull(table, all);
  const auto age = [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      pull(table, kept);
      update(table, kept, std::vector<float>(kept.size() * 2), RowRule::kSgd);
    }
  };
  age(9);
  EXPECT_EQ(table.stats().expired, 0);
  age(16);
  EXPECT_EQ(table.stats().rows, 3000);
  EXPECT_EQ(table.stats().expired, 17000);
  const auto after = pull(table, kept, false);
  EXPECT_TRUE(std::equal(after.begin(), after.end(), before.begin()));
  EXPECT_EQ(pull(table, {all.back()}, false), std::vector<float>(2, 0.0f));
}

TEST(GrowableTable, AKeyIsAdmittedWhenItIsSeenForTheNthTime) {
  TableOptions o = options(1);
  o.admit_count = 3;
  GrowableTable table("t", o);
  const Keys few = {10, 20, 30};
  for (int time = 1; time <= 3; ++time) {
    pull(table, few);
    EXPECT_EQ(table.stats().rows, time < 3 ? 0 : 3) << time;
  }
  EXPECT_EQ(table.stats().waiting, 6);
  EXPECT_EQ(pull(table, {40}), std::vector<float>(1, 0.0f));
  update(table, {40}, {1.0f}, RowRule::kSgd);  // nothing to update
  EXPECT_EQ(table.stats().rows, 3);
}

TEST(GrowableTable, AKeyIsAdmittedWithTheGivenProbability) {
  TableOptions o = options(1);
  o.admit_probability = 0.25f;
  GrowableTable table("t", o);
  pull(table, test::random_keys(40000, 1, ~uint64_t{0}));
  EXPECT_NEAR(static_cast<double>(table.stats().rows), 10000, 400);
}

TEST(GrowableTable, RefusesOptionsThatContradictEachOther) {
  const auto refused = [](auto&& change) {
    TableOptions o = options(4);
    change(o);
    EXPECT_THROW(GrowableTable("t", o), Error);
  };
  refused([](TableOptions& o) { o.width = 0; });
  refused([](TableOptions& o) { o.low = 2; });
  refused([](TableOptions& o) { o.start = Start::kNormal, o.high = -1; });
  refused([](TableOptions& o) { o.high = std::numeric_limits<float>::quiet_NaN(); });
  refused([](TableOptions& o) { o.max_bytes = 100; });
  refused([](TableOptions& o) { o.max_bytes = -1; });
  refused([](TableOptions& o) { o.admit_count = 0; });
  refused([](TableOptions& o) { o.admit_probability = 0; });
  refused([](TableOptions& o) { o.expire_after = -1; });
}

// ---- the byte limit

TEST(GrowableTableLimit, EndlessNewKeysStayBelowItAndOldOnesGo) {
  for (const int64_t limit : {int64_t{200} << 10, int64_t{3} << 20}) {
    TableOptions o = options(16, RowRule::kAdam);
    o.max_bytes = limit;
    GrowableTable table("t", o);
    const Keys loved = {1, 2, 3};  // seen in every step
    const auto before = pull(table, loved);
    int64_t fresh = 1000;
    for (int step = 0; step < 300; ++step) {
      Keys keys = loved;
      for (int i = 0; i < 200; ++i) keys.push_back(fresh++);
      pull(table, keys);
      update(table, keys, std::vector<float>(keys.size() * 16), RowRule::kAdam);
      ASSERT_LE(table.stats().bytes, limit);
    }
    const TableStats s = table.stats();
    EXPECT_EQ(s.created, s.rows + s.evicted);
    EXPECT_EQ(s.created + s.refused, 60003);
    EXPECT_GT(s.rows * 16 * 3 * 4, limit / 2);  // and uses what it may
    EXPECT_EQ(pull(table, loved, false), before);
  }
}

TEST(GrowableTableLimit, WithoutEvictionNewKeysAreRefused) {
  TableOptions o = options(16);
  o.max_bytes = 64 << 10;
  o.evict = false;
  GrowableTable table("t", o);
  Keys keys(5000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
  testing::internal::CaptureStderr();
  pull(table, keys);
  pull(table, keys);
  const std::string said = testing::internal::GetCapturedStderr();
  const TableStats s = table.stats();
  EXPECT_EQ(s.evicted, 0);
  EXPECT_EQ(s.refused, 2 * (5000 - s.rows));
  EXPECT_LE(s.bytes, o.max_bytes);
  EXPECT_NE(said.find(fmt::format("table t is at its limit of 65536 bytes with {} rows", s.rows)), std::string::npos)
      << said;
}

TEST(GrowableTableLimit, ABatchLargerThanTheTableIsRefusedInParts) {
  TableOptions o = options(16);
  o.max_bytes = 64 << 10;
  GrowableTable table("t", o);
  const Keys keys = test::random_keys(200000, 5, ~uint64_t{0});  // quick: no search through a table for each key
  pull(table, keys);
  EXPECT_GT(table.stats().refused, 190000);
  EXPECT_LE(table.stats().bytes, o.max_bytes);
}

// ---- files

void train(GrowableTable& table, uint64_t from, uint64_t steps) {
  for (uint64_t s = from; s < from + steps; ++s) {
    const Keys keys = test::random_keys(500, s, 3000);
    pull(table, keys);
    update(table, keys, test::random_floats(keys.size() * 6, s), table.options().rule);
  }
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class GrowableTableFiles : public testing::TestWithParam<RowRule> {};
INSTANTIATE_TEST_SUITE_P(Rules, GrowableTableFiles, testing::ValuesIn(test::kRules),
                         [](const auto& of) { return std::string(test::name_of(of.param)); });

TEST_P(GrowableTableFiles, CarryRowsWithTheirMoments) {
  const std::string path = scratch_path("table"), later = scratch_path("later"), again = scratch_path("again");
  TableOptions o = options(6, GetParam());
  o.expire_after = 40;
  o.start = Start::kNormal;
  GrowableTable table("t", o);
  train(table, 0, 10);
  test::save(table, path);
  train(table, 10, 10);
  test::save(table, later);
  GrowableTable loaded("t", o);
  train(loaded, 100, 1);  // goes when the file comes
  loaded.load(path);
  EXPECT_EQ(loaded.stats().created, 0);
  train(loaded, 10, 10);
  test::save(loaded, again);
  EXPECT_EQ(content(later), content(again));
  const auto opened = GrowableTable::open("o", path);
  EXPECT_EQ(opened->options().expire_after, 40);
  EXPECT_EQ(opened->options().rule, GetParam());
  EXPECT_EQ(opened->options().start, Start::kNormal);
  train(*opened, 10, 10);
  test::save(*opened, again);
  EXPECT_EQ(content(later), content(again));
}

TEST_P(GrowableTableFiles, MayLeaveOutMoments) {
  const std::string path = scratch_path("table");
  GrowableTable table("t", options(6, GetParam()));
  train(table, 0, 5);
  const Keys keys = table.keys();
  const auto rows = pull(table, keys, false);
  test::save(table, path, false);
  EXPECT_EQ(std::filesystem::file_size(path), 96 + keys.size() * (12 + 6 * 4));
  EXPECT_EQ(pull(*GrowableTable::open("o", path), keys, false), rows);
  table.load(path);
  EXPECT_EQ(pull(table, keys, false), rows);
  GrowableTable without("w", options(6));
  test::save(table, path);
  without.load(path);
  EXPECT_EQ(pull(without, keys, false), rows);
}

TEST_P(GrowableTableFiles, OfAnotherRuleAreRefused) {
  const std::string path = scratch_path("table");
  GrowableTable table("t", options(6, GetParam()));
  train(table, 0, 2);
  test::save(table, path);
  for (const RowRule rule : test::kRules) {
    GrowableTable other("other", options(6, rule));
    if (rule == GetParam() || rule == RowRule::kSgd || GetParam() == RowRule::kSgd) {
      EXPECT_NO_THROW(other.load(path)) << test::name_of(rule);
    } else {
      EXPECT_THROW(other.load(path), Error) << test::name_of(rule);
      EXPECT_EQ(other.stats().rows, 0);
    }
  }
}

TEST(GrowableTableFile, DamageIsRefusedAndChangesNothing) {
  const std::string path = scratch_path("table");
  GrowableTable table("t", options(6, RowRule::kAdam));
  train(table, 0, 5);
  test::save(table, path);
  const std::string good = content(path);
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_THROW(table.load(path), Error);
    EXPECT_THROW(GrowableTable::open("o", path), Error);
  };
  for (const size_t size : {size_t{0}, size_t{50}, size_t{96}, good.size() / 2, good.size() - 1})
    refused(good.substr(0, size));
  refused(good + "x");
  for (const size_t at : {0, 9, 15, 17, 25, 31, 36}) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
    refused(bytes);
  }
  EXPECT_THROW(table.load(path + ".not"), Error);
  const std::string now = scratch_path("now");
  test::save(table, now);
  EXPECT_EQ(content(now), good);
}

// The clock starts again at 2^31: rows that were seen a little before it are not old.
TEST(GrowableTableFile, AgesContinueWhereTheClockStartsAgain) {
  const std::string path = scratch_path("table");
  TableOptions o = options(2);
  o.expire_after = 1000;
  GrowableTable table("t", o);
  pull(table, test::random_keys(500, 1, 3000));
  test::save(table, path);
  std::string bytes = content(path);
  const int64_t clock = INT32_MAX - 5;
  std::memcpy(&bytes[8 + 3 * 8], &clock, sizeof clock);
  const uint32_t seen = INT32_MAX - 10;
  for (size_t at = 96 + 8; at < bytes.size(); at += 8 + 4 + 2 * 4) std::memcpy(&bytes[at], &seen, sizeof seen);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto loaded = GrowableTable::open("o", path);
  const int64_t rows = loaded->stats().rows;
  ASSERT_GT(rows, 0);
  for (int i = 0; i < 400; ++i) update(*loaded, {}, {}, RowRule::kSgd);
  EXPECT_EQ(loaded->stats().rows, rows);
  EXPECT_EQ(loaded->stats().expired, 0);
}

TEST(GrowableTableFile, ATableThatIsTooSmallForItIsAnError) {
  const std::string path = scratch_path("table");
  GrowableTable table("t", options(6, RowRule::kAdam));
  train(table, 0, 20);
  test::save(table, path);
  TableOptions o = options(6, RowRule::kAdam);
  o.max_bytes = 80 << 10;
  GrowableTable small("small", o);
  try {
    small.load(path);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kResourceExhausted);
  }
  EXPECT_EQ(small.stats().rows, 0);
}

TEST(GrowableTable, AVariableKnowsItsTable) {
  Value value, other;
  EXPECT_EQ(GrowableTable::of(value), nullptr);
  const auto table = std::make_shared<GrowableTable>("t", options(2));
  GrowableTable::put(&value, table);
  EXPECT_EQ(GrowableTable::of(value), table);
  other.as<std::shared_ptr<void>>() = std::make_shared<int>(3);
  EXPECT_EQ(GrowableTable::of(other), nullptr);
}

}  // namespace
}  // namespace anabranch::sparse
