// Parts of the readers by themselves: orders, numbers, what errors show, what blocks weigh.
#include <gtest/gtest.h>

#include <numeric>

#include "data/block.h"
#include "data/number.h"
#include "data/shuffle.h"

namespace anabranch::data {
namespace {

// SplitMix64 as published, and Fisher and Yates' way to shuffle from the end.
uint64_t next(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

TEST(Shuffle, IsTheOneThatIsWrittenDown) {
  for (const uint64_t seed : {0u, 7u}) {
    for (const uint64_t round : {0u, 3u}) {
      uint64_t state = seed;
      for (const uint64_t part : {round, uint64_t{0}}) state = next(&state) ^ part;
      std::vector<uint32_t> expected(1000);
      std::iota(expected.begin(), expected.end(), 0u);
      for (size_t i = expected.size(); i > 1; --i) {
        const auto with = static_cast<size_t>((static_cast<unsigned __int128>(next(&state)) * i) >> 64);
        std::swap(expected[i - 1], expected[with]);
      }
      std::vector<Records::At> order(expected.size());
      for (uint32_t i = 0; i < order.size(); ++i) order[i] = {0, i};
      shuffle_order(&order, seed, round);
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(order[i].row, expected[i]) << i;
    }
  }
}

Spelling id(std::string text, uint64_t* value) {
  text.reserve(text.size() + kTextPadding);
  return careful_id(text, value);
}

TEST(Number, IdsAreReadToTheirEnd) {
  uint64_t value = 0;
  for (const auto& [text, expected] : std::vector<std::pair<std::string, uint64_t>>{
           {"0", 0}, {"7", 7}, {"+12", 12}, {"-3", uint64_t{0} - 3}, {"18446744073709551615", ~uint64_t{0}}}) {
    EXPECT_EQ(id(text, &value), Spelling::kGood) << text;
    EXPECT_EQ(value, expected) << text;
  }
  EXPECT_EQ(careful_id(std::string_view("12345", 3), &value), Spelling::kGood) << "any text may follow";
  EXPECT_EQ(value, 123u);
  for (const char* text : {"", "-", "+", "--1", "1x", "1 ", "x1", "1.0"})
    EXPECT_EQ(id(text, &value), Spelling::kNone) << text;
  for (const char* text : {"18446744073709551616", "-9223372036854775809"})
    EXPECT_EQ(id(text, &value), Spelling::kRange) << text;
}

TEST(BadRow, IsShownWithoutBytesThatNoTerminalShouldSee) {
  Schema schema;
  BadRow row;
  row.column = 1;
  row.reason = BadReason::kTextAfter;
  row.text = std::string("a ~\x7f\x1f\t") + '\0' + "\xc3z";
  EXPECT_EQ(bad_row_message(row, schema, "part-0", 3),
            "part-0:3:1: something follows the last slot: a ~\\x7f\\x1f\\t\\x00\\xc3z");
  row.text = std::string(200, 'a');
  row.column = 100;
  const std::string shown = bad_row_message(row, schema, "f", 1);
  EXPECT_EQ(shown, "f:1:100: something follows the last slot: ..." + std::string(120, 'a') + "...");
}

TEST(Block, WeighsWhatItsTextsTake) {
  Block block;
  block.reserve(100);
  const int64_t empty = block.memory_bytes();
  EXPECT_GE(empty, 400);
  block.ins_ids = {std::string(1000, 'a'), "b"};
  block.contents = {std::string(500, 'c')};
  EXPECT_GE(block.memory_bytes(), empty + 1500 + 3 * static_cast<int64_t>(sizeof(std::string)));
  EXPECT_LE(block.memory_bytes(), empty + 1600 + 3 * static_cast<int64_t>(sizeof(std::string)));
}

// Records of two slots of ids: record i holds i in the first and 1000 + i in the second.
Records numbered(const Schema& schema, uint32_t count) {
  Block block;
  Records records;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t words[] = {1, i, 0, 1, 1000 + i, 0};
    block.append(words, 6);
    records.order.push_back({0, i});
  }
  EXPECT_EQ(RecordShape(schema).parts().size(), 2u);
  records.blocks.push_back(std::make_shared<Block>(block.packed()));
  return records;
}

TEST(Shuffle, OfOneSlotLeavesTheOthersWhereTheyAre) {
  Schema schema;
  schema.slots = {{.name = "a"}, {.name = "b"}};
  const Records from = numbered(schema, 50);
  for (const std::string name : {"a", "b"}) {
    const Records made = shuffle_slots(from, schema, {name}, 1, 0);
    ASSERT_EQ(made.order.size(), 50u);
    std::vector<bool> seen(50);
    int moved = 0;
    for (uint32_t i = 0; i < 50; ++i) {
      const uint32_t* row = made.blocks[made.order[i].block]->row(made.order[i].row);
      const uint32_t a = row[1], b = row[4] - 1000, other = name == "a" ? a : b;
      EXPECT_EQ(name == "a" ? b : a, i);
      ASSERT_LT(other, 50u);
      EXPECT_FALSE(seen[other]);
      seen[other] = true;
      moved += other != i;
    }
    EXPECT_GT(moved, 30) << "slot " << name;
  }
}

}  // namespace
}  // namespace anabranch::data
