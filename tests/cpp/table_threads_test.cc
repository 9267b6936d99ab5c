// Growable tables under many threads: whole rows always, and contents that do not depend on which thread did the work.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

using test::Keys;
using test::options;
using test::pull;
using test::scratch_path;
using test::update;

// Chunks on separate threads, taken as they come, last ones first.
class Threads final : public Parallel {
 public:
  explicit Threads(int count) : count_(count) {}
  void run(int64_t n, int64_t chunk, Body body, void* fn) override {
    std::atomic<int64_t> left{(n + chunk - 1) / chunk};
    std::vector<std::thread> threads;
    for (int t = 0; t < count_; ++t) {
      threads.emplace_back([&] {
        for (int64_t p = --left; p >= 0; p = --left) body(fn, p * chunk, std::min(n, (p + 1) * chunk));
      });
    }
    for (auto& t : threads) t.join();
  }

 private:
  int count_;
};

std::string bytes_after_training(Parallel* parallel) {
  TableOptions o = options(6, RowRule::kAdam);
  o.max_bytes = 200 << 10;
  o.admit_count = 2;
  o.admit_probability = 0.9f;
  o.expire_after = 4;
  GrowableTable table("t", o);
  std::vector<float> seen;
  for (uint64_t step = 0; step < 30; ++step) {
    const bool full = step >= 20;  // before, rows have the time to expire
    Keys keys = test::random_keys(full ? 1500 : 300, step, full ? 6000 : 1000);
    if (!full) {
      for (auto& k : keys) k += static_cast<int64_t>(100 * step);
    }
    const auto rows = pull(table, keys, true, parallel);
    seen.insert(seen.end(), rows.begin(), rows.end());
    update(table, keys, test::random_floats(keys.size() * 6, step), RowRule::kAdam, parallel);
  }
  const TableStats s = table.stats();
  EXPECT_GT(s.evicted, 0);
  EXPECT_GT(s.expired, 0);
  std::string all(reinterpret_cast<const char*>(seen.data()), seen.size() * sizeof(float));
  for (const int64_t key : table.keys()) all += std::to_string(key) + " ";
  return all;
}

TEST(GrowableTableThreads, GiveTheSameBits) {
  const std::string one = bytes_after_training(nullptr);
  for (const int count : {2, 7}) {
    Threads threads(count);
    EXPECT_EQ(bytes_after_training(&threads), one);
  }
}

// Every update adds one number to all elements of a row, moments too: a reader that sees two numbers in one row has
// seen a row that mixes two updates.
TEST(GrowableTableThreads, NoRowIsEverTorn) {
  constexpr int64_t kWidth = 96, kKeys = 40;
  TableOptions o = options(kWidth, RowRule::kAdagrad);
  o.low = o.high = 0;
  GrowableTable table("t", o);
  std::atomic<bool> stop{false};
  std::atomic<int64_t> torn{0};
  std::atomic<int> readers{0};  // that have looked while rows are updated
  std::vector<std::thread> threads;
  const auto whole = [&](const std::vector<float>& rows) {
    for (size_t r = 0; r < rows.size(); r += kWidth) {
      for (size_t j = 1; j < kWidth; ++j) torn += rows[r + j] != rows[r];
    }
  };
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t step = 0; step < 200 || readers < 2; ++step) {
        const Keys keys = test::random_keys(60, step * 2 + t, kKeys);
        whole(pull(table, keys));
        update(table, keys, std::vector<float>(keys.size() * kWidth, 1.0f + static_cast<float>(t)), RowRule::kAdagrad);
      }
      stop = true;
    });
  }
  threads.emplace_back([&] {
    for (uint64_t step = 0; !stop; ++step) {
      whole(pull(table, test::random_keys(30, step, 2 * kKeys), false));
      readers += step == 0;
    }
  });
  threads.emplace_back([&] {
    const std::string path = scratch_path("live");
    for (uint64_t step = 0; !stop; ++step) {
      test::save(table, path);
      whole(pull(*GrowableTable::open("copy", path), test::random_keys(30, step, kKeys), false));
      (void)table.stats();
      readers += step == 0;
    }
  });
  for (auto& t : threads) t.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(readers, 2);
  EXPECT_EQ(table.stats().rows, kKeys);
}

// Rows come and go while others use the table.
TEST(GrowableTableThreads, RowsComeAndGoMeanwhile) {
  TableOptions o = options(8);
  o.max_bytes = 64 << 10;
  o.expire_after = 3;
  GrowableTable table("t", o);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t step = 0; step < 150; ++step) {
        const Keys keys = test::random_keys(100, step * 3 + t, 4000);
        pull(table, keys);
        update(table, keys, std::vector<float>(keys.size() * 8, 1.0f), RowRule::kSgd);
        ASSERT_LE(table.stats().bytes, o.max_bytes);
      }
    });
  }
  for (auto& t : threads) t.join();
  const TableStats s = table.stats();
  EXPECT_EQ(s.created, s.rows + s.evicted + s.expired);
}

}  // namespace
}  // namespace anabranch::sparse
