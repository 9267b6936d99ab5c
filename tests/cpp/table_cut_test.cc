// A table as it was at one moment, written while it goes on: rows change, come and go, its index grows.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

using test::Keys;
using test::options;
using test::update;

// The numbers of rows by key, followed by the moments.
using Rows = std::map<int64_t, std::string>;

// False: a key came that was there.
bool add(const std::string& bytes, size_t row_bytes, Rows* to) {
  bool once = true;
  for (size_t at = 0; at < bytes.size(); at += row_bytes) {
    int64_t key = 0;
    std::memcpy(&key, bytes.data() + at, sizeof(key));
    once &= to->emplace(key, bytes.substr(at + 12, row_bytes - 12)).second;
  }
  return once;
}

Rows rows_of(GrowableTable& table) {
  std::string bytes;
  for (uint64_t part = 0; part >> KeyOrder::kBits == 0; ++part) table.append_rows(part, KeyOrder::kBits, &bytes);
  Rows out;
  add(bytes, table.header().row_bytes(), &out);
  return out;
}

void make(GrowableTable& table, const Keys& keys, RowRule which, uint64_t seed) {
  RecordUpdate how = test::rule(which);
  how.makes_rows = true;
  GrowableTable::Scratch scratch;
  const auto grads = test::random_floats(keys.size() * static_cast<size_t>(table.options().width), seed);
  table.update(keys.data(), static_cast<int64_t>(keys.size()), grads.data(), how, &scratch, nullptr);
}

// The result of a cut when `meanwhile` happens between any two slices.
template <class Fn> Rows cut_while(const std::shared_ptr<GrowableTable>& table, int64_t slice_bytes, Fn&& meanwhile) {
  GrowableTable::Cut cut(table, slice_bytes);
  Rows out;
  std::string rows;
  meanwhile(0);
  for (int iteration = 1; cut.next(&rows); ++iteration) {
    EXPECT_TRUE(add(rows, table->header().row_bytes(), &out)) << "a row came twice";
    rows.clear();
    meanwhile(iteration);
  }
  return out;
}

TEST(TableCut, IsOfItsMoment) {
  for (const RowRule rule : test::kRules) {
    for (const int64_t slice_bytes : {1, 600, 1 << 20}) {
      const auto table = std::make_shared<GrowableTable>("t", options(3, rule));
      make(*table, test::random_keys(900, 1, 2000), rule, 2);
      const Rows before = rows_of(*table);
      const Rows found = cut_while(table, slice_bytes, [&](int iteration) {
        const auto seed = static_cast<uint64_t>(iteration) + 10;
        if (iteration < 60) make(*table, test::random_keys(200, seed, 2000 + seed * 150), rule, seed);
      });
      EXPECT_EQ(found, before) << test::name_of(rule) << ", slices of " << slice_bytes;
      EXPECT_GT(rows_of(*table).size(), 2 * before.size());  // the index has grown
      EXPECT_EQ(cut_while(table, slice_bytes, [](int) {}), rows_of(*table));
    }
  }
}

TEST(TableCut, HasRowsThatGoMeanwhile) {
  TableOptions expires = options(3, RowRule::kAdagrad), evicts = options(3, RowRule::kAdagrad);
  expires.expire_after = 2;
  evicts.max_bytes = 100000;
  for (const TableOptions& o : {expires, evicts}) {
    const auto table = std::make_shared<GrowableTable>("t", o);
    make(*table, test::random_keys(800, 1, ~uint64_t{0}), RowRule::kAdagrad, 2);
    const Rows before = rows_of(*table);
    const Rows found = cut_while(table, 1000, [&](int iteration) {
      const auto seed = static_cast<uint64_t>(iteration) + 10;
      if (iteration < 40) make(*table, test::random_keys(150, seed, ~uint64_t{0}), RowRule::kAdagrad, seed);
    });
    EXPECT_EQ(found, before);
    const TableStats s = table->stats();
    EXPECT_GT(s.evicted + s.expired, 500);
  }
}

TEST(TableCut, HasRowsThatAreReadFromAFileMeanwhile) {
  const auto table = std::make_shared<GrowableTable>("t", options(3));
  make(*table, test::random_keys(500, 1, 2000), RowRule::kSgd, 2);
  std::string rows;
  table->append_rows(3, KeyOrder::kBits, &rows);
  make(*table, test::random_keys(500, 2, 2000), RowRule::kSgd, 3);
  const Rows before = rows_of(*table);
  const Rows found = cut_while(table, 100, [&](int iteration) {
    if (iteration == 0) table->add_rows(rows.data(), rows.size());
  });
  EXPECT_EQ(found, before);
  EXPECT_NE(found, rows_of(*table));
}

int64_t index_bytes(GrowableTable& table) {
  std::vector<int64_t> chunks;
  table.each_chunk([&](const void*, int64_t bytes) { chunks.push_back(bytes); });
  return chunks.at(0);
}

// Rows come in the order of their hashes: an index that grew with them would be full at one end, again and again.
TEST(TableCut, IsReadIntoAnIndexThatHasRoom) {
  const auto table = std::make_shared<GrowableTable>("t", options(1));
  make(*table, test::random_keys(40000, 1, ~uint64_t{0}), RowRule::kSgd, 2);
  const Rows rows = rows_of(*table);
  const std::string path = test::scratch_path("room");
  test::save(*table, path);
  GrowableTable again("again", options(1));
  again.reserve(static_cast<int64_t>(rows.size()));
  const int64_t room = index_bytes(again);
  std::string bytes;
  GrowableTable::Cut cut(table, 4096);
  while (cut.next(&bytes)) {
  }
  again.add_rows(bytes.data(), bytes.size());
  EXPECT_EQ(index_bytes(again), room);
  EXPECT_EQ(rows_of(again), rows);
  again.load(path);
  EXPECT_EQ(index_bytes(again), room);
  again.reserve(10);  // it does not shrink
  EXPECT_EQ(index_bytes(again), room);
}

// A slice has about as many rows as its number of bytes says.
TEST(TableCut, GoesByTheSliceThatWasAskedFor) {
  const auto table = std::make_shared<GrowableTable>("t", options(2));
  make(*table, test::random_keys(50000, 1, ~uint64_t{0}), RowRule::kSgd, 2);
  const auto row_bytes = static_cast<int64_t>(table->header().row_bytes());
  GrowableTable::Cut cut(table, 64 * row_bytes);
  std::string rows;
  int slices = 0;
  for (; cut.next(&rows); ++slices) {
    EXPECT_LE(static_cast<int64_t>(rows.size()), int64_t{3} * 64 * row_bytes);
    rows.clear();
  }
  EXPECT_GE(slices, 50000 / (2 * 64));
}

TEST(TableCut, IsOfOneTableAtOneTime) {
  const auto table = std::make_shared<GrowableTable>("t", options(3));
  make(*table, test::random_keys(500, 1, 2000), RowRule::kSgd, 2);
  const std::string path = test::scratch_path("cut");
  test::save(*table, path);
  const Rows before = rows_of(*table);
  {
    GrowableTable::Cut cut(table, 100);
    EXPECT_THROW(GrowableTable::Cut(table, 100), Error);
    std::string rows;
    EXPECT_TRUE(cut.next(&rows));
    table->load(path);
    EXPECT_THROW(cut.next(&rows), Error);
  }
  EXPECT_EQ(cut_while(table, 100, [](int) {}), before);
}

// A cut that has given all its rows and is destroyed late, by an error that was kept for instance, ends no later cut.
TEST(TableCut, ThatIsOverTouchesNoLaterOne) {
  const auto table = std::make_shared<GrowableTable>("t", options(3));
  make(*table, test::random_keys(500, 1, 2000), RowRule::kSgd, 2);
  const Rows before = rows_of(*table);
  auto late = std::make_unique<GrowableTable::Cut>(table, 100);
  std::string rows;
  while (late->next(&rows)) continue;
  EXPECT_EQ(cut_while(table, 100,
                      [&](int slice) {
                        if (slice == 1) late.reset();
                      }),
            before);
}

// Changes that were not written belong to the next cut as soon as this one is abandoned, not when it is destroyed.
TEST(TableCut, ThatIsAbandonedGivesItsChangesBack) {
  const auto table = std::make_shared<GrowableTable>("t", options(3));
  table->record_since(7);
  make(*table, test::random_keys(500, 1, 2000), RowRule::kSgd, 2);
  CutRows first, none, second;
  GrowableTable::Cut cut(table, 100, CutKind::kChanges);
  while (cut.next(&first)) continue;
  EXPECT_FALSE(first.changed.empty());
  cut.abandon();
  EXPECT_FALSE(cut.next(&none));
  GrowableTable::Cut again(table, 100, CutKind::kChanges);
  while (again.next(&second)) continue;
  EXPECT_EQ(second.changed.size(), first.changed.size());
}

// A push that waits for a shard is let go first: it waits for the slice that is being written, and for no other.
TEST(TableCut, WaitsForOneSlice) {
  for (int round = 0; round < 50; ++round) {
    SpinLock lock;
    int slices = 0, seen = -1;  // with the lock
    std::atomic<bool> over{false};
    lock.lock();  // a slice is being written
    std::thread push([&] {
      const std::lock_guard held(lock);
      seen = slices;
      over = true;
    });
    while (lock.waiting() == 0) std::this_thread::yield();
    std::thread writer([&] {
      while (!over) {
        lock.lock_after_others();
        ++slices;
        lock.unlock();
      }
    });
    lock.unlock();
    push.join();
    writer.join();
    EXPECT_EQ(seen, 0);
  }
}

// Rows are whole while threads work on them: each has one number in all its places.
TEST(TableCut, DuringTrainingInOtherThreads) {
  TableOptions o = options(8);
  o.low = o.high = 0;
  const auto table = std::make_shared<GrowableTable>("t", o);
  const Keys keys = test::random_keys(3000, 1, ~uint64_t{0});
  const std::vector<float> ones(keys.size() * 8, 1.0f);
  RecordUpdate how = test::rule(RowRule::kSgd);
  how.rate = 1;
  how.makes_rows = true;
  const auto train = [&] {
    GrowableTable::Scratch scratch;
    table->update(keys.data(), static_cast<int64_t>(keys.size()), ones.data(), how, &scratch, nullptr);
  };
  for (int i = 0; i < 3; ++i) train();
  for (int round = 0; round < 5; ++round) {
    const Rows before = rows_of(*table);
    GrowableTable::Cut cut(table, 500);
    std::atomic<bool> over{false};
    std::thread trainer([&] {
      while (!over) train();
    });
    Rows found;
    std::string rows;
    while (cut.next(&rows)) {
      EXPECT_TRUE(add(rows, table->header().row_bytes(), &found));
      rows.clear();
    }
    over = true;
    trainer.join();
    EXPECT_EQ(found, before);
  }
}

}  // namespace
}  // namespace anabranch::sparse
