// A growable table chunk by chunk: parts by the hash, rows as they stand in a file, rows that an update makes.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "sparse/hash.h"
#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

using test::Keys;
using test::options;
using test::pull;
using test::update;

// A table with rows that were trained.
std::unique_ptr<GrowableTable> trained(size_t n, RowRule rule, uint64_t range = ~uint64_t{0}) {
  auto table = std::make_unique<GrowableTable>("t", options(3, rule));
  const Keys keys = test::random_keys(n, 4, range);
  pull(*table, keys);
  update(*table, keys, test::random_floats(n * 3, 5), rule);
  return table;
}

Keys keys_in(const std::string& rows, size_t row_bytes) {
  Keys keys(rows.size() / row_bytes);
  for (size_t i = 0; i < keys.size(); ++i) std::memcpy(&keys[i], rows.data() + i * row_bytes, sizeof(int64_t));
  return keys;
}

TEST(TableChunks, PartsTogetherAreTheTable) {
  for (const auto& [n, range] : {std::pair<size_t, uint64_t>{0, 1}, {1, 9}, {300, 200}, {50000, ~uint64_t{0}}}) {
    const auto table = trained(n, RowRule::kAdagrad, range);
    const size_t row_bytes = table->header().row_bytes();
    EXPECT_EQ(row_bytes, 8 + 4 + 4 * 6u);
    for (const int bits : {4, 5, 9, 12}) {
      Keys found;
      GrowableTable again("again", options(3, RowRule::kAdagrad));
      for (uint64_t part = 0; part >> bits == 0; ++part) {
        std::string rows;
        table->append_rows(part, bits, &rows);
        const Keys here = keys_in(rows, row_bytes);
        EXPECT_TRUE(std::is_sorted(here.begin(), here.end()));
        for (const int64_t key : here) ASSERT_EQ(hash_id(key) >> (64 - bits), part);
        found.insert(found.end(), here.begin(), here.end());
        again.add_rows(rows.data(), rows.size());
      }
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, table->keys()) << n << " rows, " << bits << " bits";
      EXPECT_EQ(pull(again, found, false), pull(*table, found, false));
      // Moments came with them: the next update does the same to both.
      const auto grads = test::random_floats(found.size() * 3, 6);
      const auto other = trained(n, RowRule::kAdagrad, range);
      update(*other, found, grads, RowRule::kAdagrad);
      update(again, found, grads, RowRule::kAdagrad);
      EXPECT_EQ(pull(again, found, false), pull(*other, found, false));
    }
  }
}

TEST(TableChunks, OnlyChunksAreAccepted) {
  const auto table = trained(100, RowRule::kSgd);
  std::string rows;
  for (const auto& [part, bits] : {std::pair<uint64_t, int>{0, 3}, {16, 4}, {0, 41}, {~uint64_t{0}, 40}}) {
    EXPECT_THROW(table->append_rows(part, bits, &rows), Error) << part << " by " << bits;
  }
  table->append_rows(0, 4, &rows);
  ASSERT_GT(rows.size(), 24u);
  EXPECT_THROW(table->add_rows(rows.data(), rows.size() - 1), Error);
}

TEST(TableChunks, AnUpdateMayMakeRows) {
  for (const RowRule rule : test::kRules) {
    const Keys keys = test::random_keys(4000, 8, 3000);
    const auto grads = test::random_floats(keys.size() * 3, 9);
    GrowableTable looked("a", options(3, rule)), made("b", options(3, rule)), left("c", options(3, rule));
    pull(looked, keys);
    update(looked, keys, grads, rule);
    RecordUpdate how = test::rule(rule);
    GrowableTable::Scratch scratch;
    left.update(keys.data(), static_cast<int64_t>(keys.size()), grads.data(), how, &scratch, nullptr);
    EXPECT_EQ(left.stats().rows, 0);
    how.makes_rows = true;
    made.update(keys.data(), static_cast<int64_t>(keys.size()), grads.data(), how, &scratch, nullptr);
    EXPECT_EQ(made.keys(), looked.keys());
    EXPECT_EQ(pull(made, keys, false), pull(looked, keys, false));
  }
}

TEST(TableChunks, KeysAreDealtOutEvenlyAndNotByTheirShard) {
  for (const uint64_t servers : {2, 3, 7}) {
    std::map<uint64_t, int64_t> of_server;
    std::set<std::pair<uint64_t, uint64_t>> shards;
    for (int64_t key = -50000; key < 50000; ++key) {
      const uint64_t s = server_of(key, servers);
      ASSERT_LT(s, servers);
      ++of_server[s];
      shards.insert({s, hash_id(key) >> (64 - KeyOrder::kBits)});
    }
    for (const auto& [s, n] : of_server) EXPECT_NEAR(static_cast<double>(n), 1e5 / static_cast<double>(servers), 1500);
    EXPECT_EQ(shards.size(), servers * KeyOrder::kShards);
  }
}

TEST(TableChunks, AFileIsLoadedByThoseWhoseKeysAreThere) {
  const auto table = trained(3000, RowRule::kAdam);
  const std::string path = test::scratch_path("dealt");
  test::save(*table, path);
  Keys found;
  for (uint64_t server = 0; server < 3; ++server) {
    GrowableTable part("part", options(3, RowRule::kAdam));
    part.load(path, [&](int64_t key) { return server_of(key, 3) == server; });
    const Keys mine = part.keys();
    EXPECT_GT(mine.size(), 800u);
    EXPECT_EQ(pull(part, mine, false), pull(*table, mine, false));
    found.insert(found.end(), mine.begin(), mine.end());
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, table->keys());
}

}  // namespace
}  // namespace anabranch::sparse
