// Rules of growable tables that updates apply: the same rows on any number of servers and after a restart, a limit
// that holds under endless keys, eviction of the rarest rows, scores.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "sparse/hash.h"
#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

using test::Keys;

TableOptions ruled(int64_t width = 4) {
  TableOptions o = test::options(width, RowRule::kAdagrad);
  o.by_updates = true;
  return o;
}

void update(GrowableTable& table, const Keys& keys) {
  const std::vector<float> grads(keys.size() * static_cast<size_t>(table.options().width), 0.5f);
  test::update(table, keys, grads, RowRule::kAdagrad);
}

// Keys of a Zipf distribution without an end: key k with a probability near 1 / k^1.1.
Keys zipf(size_t n, uint64_t seed) {
  std::mt19937_64 draw(seed);
  Keys keys(n);
  for (auto& k : keys) {
    const double u = (static_cast<double>(draw() >> 11) + 1) * 0x1p-53;
    k = static_cast<int64_t>(std::min(std::pow(u, -1 / 0.1), 9e18));
  }
  return keys;
}

std::map<int64_t, std::string> rows_of(GrowableTable& table) {
  std::string bytes;
  for (uint64_t part = 0; part >> KeyOrder::kBits == 0; ++part) table.append_rows(part, KeyOrder::kBits, &bytes);
  std::map<int64_t, std::string> out;
  const size_t row = table.header().row_bytes();
  for (size_t at = 0; at < bytes.size(); at += row) {
    int64_t key = 0;
    std::memcpy(&key, bytes.data() + at, sizeof(key));
    out[key] = bytes.substr(at, row);
  }
  return out;
}

std::map<std::string, TableOptions> all_rules() {
  std::map<std::string, TableOptions> all;
  (all["count"] = ruled()).admit_count = 3;
  (all["probability"] = ruled()).admit_probability = 0.3f;
  (all["age"] = ruled()).expire_after = 5;
  for (const char* name : {"lru", "lfu", "score", "everything"}) (all[name] = ruled()).max_bytes = 600 << 10;
  all["lfu"].policy = Policy::kRarest;
  all["score"].policy = Policy::kLowestScore;
  all["score"].score.shrink_every = 7;
  all["score"].score.delete_below = 0.04f;
  all["everything"].admit_count = 2;
  all["everything"].expire_after = 9;
  return all;
}

TEST(TableRules, LookupsOnlyRead) {
  GrowableTable table("t", ruled());
  const auto first = test::pull(table, {1, 2});
  EXPECT_EQ(table.stats().rows, 0);
  EXPECT_EQ(test::pull(table, {1, 2}, false), std::vector<float>(8, 0.0f));
  test::update(table, {1}, std::vector<float>(4, 0.0f), RowRule::kAdagrad);
  EXPECT_EQ(table.keys(), Keys{1});
  EXPECT_EQ(test::pull(table, {1, 2}), first);  // a row starts with what its key read before
}

TEST(TableRules, ServersTogetherDecideAsOneTable) {
  for (const auto& [name, o] : all_rules()) {
    GrowableTable whole("t", o);
    for (const int servers : {2, 4}) {
      std::vector<std::unique_ptr<GrowableTable>> parts;
      TableOptions one = o;
      one.servers = servers;
      for (int s = 0; s < servers; ++s) parts.push_back(std::make_unique<GrowableTable>("t", one));
      GrowableTable again("t", o);
      GrowableTable& alone = servers == 2 ? whole : again;
      for (uint64_t step = 0; step < 40; ++step) {
        const Keys keys = zipf(800, step);
        update(alone, keys);
        for (int s = 0; s < servers; ++s) {
          Keys mine;
          std::copy_if(keys.begin(), keys.end(), std::back_inserter(mine), [&](int64_t key) {
            return server_of(key, static_cast<uint64_t>(servers)) == static_cast<uint64_t>(s);
          });
          update(*parts[static_cast<size_t>(s)], mine);
        }
      }
      std::map<int64_t, std::string> found;
      for (const auto& part : parts) found.merge(rows_of(*part));
      EXPECT_EQ(found, rows_of(alone)) << name << " on " << servers << " servers";
      const TableStats s = alone.stats();
      EXPECT_GT(s.waiting + s.evicted + s.expired + s.shrunk, 500) << name;
      EXPECT_EQ(s.created, s.rows + s.evicted + s.expired + s.shrunk) << name;
    }
  }
}

// The index of a restored table has another layout: rows come in another order, into another number of buckets.
TEST(TableRules, ARestoredTableDecidesAsTheFirstOne) {
  for (const auto& [name, o] : all_rules()) {
    GrowableTable first("t", o), second("t", o);
    for (uint64_t step = 0; step < 25; ++step) update(first, zipf(800, step));
    std::vector<std::string> rows;
    for (const auto& [key, row] : rows_of(first)) rows.push_back(row);
    second.reserve(static_cast<int64_t>(rows.size()) * 2);
    std::shuffle(rows.begin(), rows.end(), std::mt19937(5));
    for (const std::string& row : rows) second.add_rows(row.data(), row.size());
    second.set_clock(first.header().clock);
    second.set_key_counts(first.key_counts());
    for (uint64_t step = 25; step < 50; ++step) {
      update(first, zipf(800, step));
      update(second, zipf(800, step));
    }
    EXPECT_EQ(rows_of(second), rows_of(first)) << name;
  }
}

TEST(TableRules, CountsOfAnotherRuleAreRefused) {
  TableOptions o = ruled();
  GrowableTable none("t", o);
  o.admit_count = 2;
  GrowableTable counts("t", o);
  EXPECT_THROW(none.set_key_counts(counts.key_counts()), Error);
  EXPECT_NO_THROW(counts.set_key_counts(counts.key_counts()));
}

// ANABRANCH_ZIPF_IDS: the long variant (30000000).
TEST(TableRules, TheLimitHoldsUnderEndlessIds) {
  const char* given = std::getenv("ANABRANCH_ZIPF_IDS");
  const int64_t ids = given ? std::atoll(given) : 400000;
  for (const int servers : {1, 2}) {
    for (const Policy policy : {Policy::kOldest, Policy::kRarest, Policy::kLowestScore}) {
      TableOptions o = ruled(16);
      o.policy = policy;
      o.admit_count = 2;
      o.admit_probability = 0.9f;
      o.servers = servers;
      o.max_bytes = int64_t{given ? 8 << 20 : 1 << 20} * servers;
      GrowableTable table("t", o);
      const int64_t limit = o.max_bytes / servers;
      testing::internal::CaptureStderr();
      for (int64_t done = 0; done < ids; done += 10000) {
        update(table, zipf(10000, static_cast<uint64_t>(done)));
        ASSERT_LE(table.stats().bytes, limit + limit / 10);
      }
      testing::internal::GetCapturedStderr();
      EXPECT_GT(table.stats().evicted, 100);
      EXPECT_GT(table.stats().bytes, limit / 2);
    }
  }
}

// How many of the keys that come again and again have a row at the end, while others pass.
double kept(Policy policy) {
  TableOptions o = ruled();
  o.max_bytes = 400 << 10;
  o.policy = policy;
  GrowableTable table("t", o);
  Keys often(1000);
  for (size_t i = 0; i < often.size(); ++i) often[i] = static_cast<int64_t>(i);
  for (int step = 0; step < 20; ++step) update(table, often);
  for (uint64_t step = 0; step < 20; ++step) update(table, test::random_keys(1000, step, ~uint64_t{0}));
  const Keys keys = table.keys();
  return static_cast<double>(std::count_if(keys.begin(), keys.end(), [](int64_t k) { return k >= 0 && k < 1000; })) /
         1000;
}

TEST(TableRules, LfuKeepsWhatWasSeenOften) {
  testing::internal::CaptureStderr();
  EXPECT_GT(kept(Policy::kRarest), 0.95);
  EXPECT_LT(kept(Policy::kOldest), 0.3);
  testing::internal::GetCapturedStderr();
}

TEST(TableRules, AScoreCountsDecaysAndRemoves) {
  TableOptions o = ruled(3);
  o.policy = Policy::kLowestScore;
  o.score = {.show = 0.1f, .click = 1, .decay = 0.5f, .delete_below = 0.2f, .shrink_every = 4};
  GrowableTable table("t", o);
  const auto push = [&](const Keys& keys, float shows, float clicks) {
    std::vector<float> grads;
    for (size_t i = 0; i < keys.size(); ++i) grads.insert(grads.end(), {shows, clicks, 0.0f});
    test::update(table, keys, grads, RowRule::kAdagrad);
  };
  push({1, 1, 2}, 4, 1);  // the sum over the occurrences of a key
  for (int i = 0; i < 3; ++i) push({}, 0, 0);
  const auto rows = test::pull(table, {1, 2}, false);
  EXPECT_EQ(rows[0], 4);  // half of 8, after one shrink
  EXPECT_EQ(rows[1], 1);
  EXPECT_EQ(rows[3], 2);
  EXPECT_EQ(rows[4], 0.5f);
  for (int i = 0; i < 4; ++i) push({}, 0, 0);  // scores 0.65 and 0.325
  EXPECT_EQ(table.stats().rows, 2);
  for (int i = 0; i < 4; ++i) push({}, 0, 0);  // 0.325 and 0.1625
  EXPECT_EQ(table.keys(), Keys{1});
  EXPECT_EQ(table.stats().shrunk, 1);
}

TEST(TableRules, FilesKeepCountsAndRefuseScoresThatTheyDoNotHold) {
  TableOptions o = ruled();
  o.policy = Policy::kRarest;
  const std::string path = test::scratch_path("counted");
  GrowableTable table("t", o), again("t", o);
  for (uint64_t step = 0; step < 5; ++step) update(table, zipf(300, step));
  test::save(table, path);
  again.load(path);
  EXPECT_EQ(rows_of(again), rows_of(table));
  test::save(table, path, false);  // without moments
  again.load(path);
  EXPECT_EQ(again.keys(), table.keys());
  o.policy = Policy::kLowestScore;
  GrowableTable scored("t", o);
  update(scored, {1, 2, 3});
  test::save(scored, path);
  const auto opened = GrowableTable::open("o", path);
  EXPECT_EQ(opened->stats().rows, 3);
  try {
    update(*opened, {1});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
  }
  scored.load(path);
  EXPECT_NO_THROW(update(scored, {1}));
}

}  // namespace
}  // namespace anabranch::sparse
