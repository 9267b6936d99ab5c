// The offsets of temporaries: none overlaps another one that lives at the same time, none extends past its block, and
// where nodes may run in parallel the next writer waits for all that touched the block before.
#include "exec/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>

namespace anabranch {
namespace {

struct Lives {
  std::deque<Value> values;
  std::vector<Temporary> all;

  void add(int64_t elems, std::vector<int> users) {
    values.emplace_back().as<Tensor>().resize(Shape{elems}, DType::kUInt8);
    const auto [first, last] = std::minmax_element(users.begin(), users.end());
    all.push_back({&values.back(), *first, *last, users});
  }
};

Lives random_lives(unsigned seed, int nodes) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Lives lives;
  for (int i = 0; i < 40; ++i) {
    const int first = below(nodes);
    std::vector<int> users{first};
    for (int more = below(4); more > 0 && users.back() + 1 < nodes; --more)
      users.push_back(users.back() + 1 + below(std::min(6, nodes - users.back() - 1)));
    lives.add(below(8) ? 1 + below(700) : 0, users);
  }
  return lives;
}

const char* begin_of(const Temporary& t) { return static_cast<const char*>(t.value->tensor().raw()); }
int64_t bytes_of(const Temporary& t) { return static_cast<int64_t>(t.value->tensor().bytes()); }
bool touch(const Temporary& a, const Temporary& b) {
  return begin_of(a) < begin_of(b) + bytes_of(b) && begin_of(b) < begin_of(a) + bytes_of(a);
}

TEST(MemoryPlan, LiveValuesDoNotOverlap) {
  int shared = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Lives lives = random_lives(seed, 60);
    MemoryPlan plan;
    EXPECT_TRUE(plan.place(lives.all, false).empty());
    for (const Temporary& a : lives.all) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(begin_of(a)) % 64, 0u);
      EXPECT_TRUE(bytes_of(a) == 0 || (plan.holds(begin_of(a)) && plan.holds(begin_of(a) + bytes_of(a) - 1)));
      for (const Temporary& b : lives.all) {
        if (&a == &b || !touch(a, b)) continue;
        ++shared;
        EXPECT_TRUE(a.last < b.first || b.last < a.first)
            << "seed " << seed << ": " << a.first << ".." << a.last << " and " << b.first << ".." << b.last;
      }
    }
    EXPECT_FALSE(plan.outgrown(lives.all));
  }
  EXPECT_GT(shared, 1000);
}

// For each node those that come before it: by these edges, and because the first user of a temporary writes it.
std::vector<std::set<int>> order(const std::vector<std::pair<int, int>>& edges, const Lives& lives, int nodes) {
  std::vector<std::set<int>> before(nodes);
  for (const auto& [from, to] : edges) {
    EXPECT_LT(from, to);
    before[to].insert(from);
  }
  for (const Temporary& t : lives.all) {
    for (const int user : t.users)
      if (user != t.first) before[user].insert(t.first);
  }
  for (int to = 0; to < nodes; ++to) {
    for (const int from : std::set<int>(before[to])) before[to].insert(before[from].begin(), before[from].end());
  }
  return before;
}

TEST(MemoryPlan, TheNextWriterWaitsForAllNodesThatTouchedTheBlock) {
  int shared = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Lives lives = random_lives(seed, 200);
    MemoryPlan plan;
    const auto before = order(plan.place(lives.all, true), lives, 200);
    for (const Temporary& a : lives.all) {
      for (const Temporary& b : lives.all) {
        if (a.last >= b.first || !touch(a, b)) continue;
        ++shared;
        EXPECT_LT(a.last + 16, b.first) << "a block rests for 16 nodes";
        for (const int user : a.users) EXPECT_TRUE(before[b.first].count(user)) << "seed " << seed << ": " << user;
      }
    }
  }
  EXPECT_GT(shared, 200);
}

TEST(MemoryPlan, LargeOnesRestForTwoNodes) {
  for (const int64_t bytes : {kLargeBytes - 64, kLargeBytes}) {
    for (const int first : {3, 4, 17, 18}) {
      const MemoryLayout layout = lay_out_memory({{bytes, 0, 1}, {bytes, first, first + 1}}, 16);
      const bool shared = layout.after[1] == 0;
      EXPECT_EQ(shared, first > 1 + (bytes < kLargeBytes ? 16 : 2)) << bytes << " " << first;
      EXPECT_EQ(layout.bytes, shared ? bytes : 2 * bytes);
    }
  }
  EXPECT_EQ(lay_out_memory({{kLargeBytes, 0, 1}, {kLargeBytes, 2, 3}}, 0).bytes, kLargeBytes);
}

TEST(MemoryPlan, ReportsItsMemoryAndWhenItIsOutgrown) {
  Lives lives;
  lives.add(100, {0, 1});
  lives.add(64, {1, 2});
  lives.add(10, {2, 3});  // replaces the first
  MemoryPlan plan;
  EXPECT_FALSE(plan.holds(nullptr));
  EXPECT_TRUE(plan.outgrown(lives.all));
  plan.place(lives.all, false);
  EXPECT_EQ(plan.bytes(), 128 + 64);
  EXPECT_EQ(plan.unshared_bytes(), 128 + 64 + 64);
  EXPECT_EQ(begin_of(lives.all[2]), begin_of(lives.all[0]));
  EXPECT_FALSE(plan.holds(begin_of(lives.all[0]) + plan.bytes()));
  EXPECT_FALSE(plan.holds(begin_of(lives.all[0]) - 1));

  Lives nothing;
  nothing.add(0, {0});
  EXPECT_FALSE(plan.outgrown(nothing.all)) << "what has no elements needs no place";

  lives.values[1].as<Tensor>().resize(Shape{65}, DType::kUInt8);
  EXPECT_TRUE(plan.outgrown(lives.all));
  plan.place(lives.all, false);  // with a quarter of room: the next shapes are likely to differ as well
  EXPECT_EQ(plan.unshared_bytes(), 128 + 128 + 64);
  lives.values[1].as<Tensor>().resize(Shape{80}, DType::kUInt8);
  EXPECT_FALSE(plan.outgrown(lives.all));
  plan.drop();
  EXPECT_TRUE(plan.outgrown(lives.all));
  EXPECT_EQ(plan.bytes(), 0);
}

// A third one may not lie there before all of them are over, and waits for the users of all.
TEST(MemoryPlan, ResultsLieWithinTheirOperands) {
  for (const bool parallel : {false, true}) {
    Lives lives;
    lives.add(100, {0, 1});
    lives.add(100, {1, 2, 3});
    lives.add(100, {3, 9});
    lives.add(100, {4, 5});
    lives.add(100, {27, 28});
    lives.all[1].within = 0;
    lives.all[2].within = 1;
    MemoryPlan plan;
    const auto edges = plan.place(lives.all, parallel);
    for (const int above : {1, 2}) EXPECT_EQ(begin_of(lives.all[static_cast<size_t>(above)]), begin_of(lives.all[0]));
    EXPECT_FALSE(touch(lives.all[3], lives.all[0])) << "the last of the three is there up to node 9";
    EXPECT_TRUE(touch(lives.all[4], lives.all[3]) || touch(lives.all[4], lives.all[0]));
    EXPECT_EQ(plan.bytes(), 2 * 128);
    EXPECT_EQ(plan.unshared_bytes(), 5 * 128);
    if (parallel && touch(lives.all[4], lives.all[0])) {
      for (const int user : {0, 1, 2, 3, 9}) EXPECT_TRUE(std::count(edges.begin(), edges.end(), std::pair(user, 27)));
    }
    lives.values[1].as<Tensor>().resize(Shape{64}, DType::kUInt8);  // another number of bytes: it lies by itself
    plan.drop();
    plan.place(lives.all, parallel);
    EXPECT_FALSE(touch(lives.all[0], lives.all[1]));
    EXPECT_FALSE(touch(lives.all[1], lives.all[2]));
  }
}

}  // namespace
}  // namespace anabranch
