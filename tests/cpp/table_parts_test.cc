// Parts of growable tables by themselves: the limits of options, restored keys, the ends of what an update reads.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <string>

#include "base/error.h"
#include "sparse/table_shard.h"
#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

TEST(TableOptions, TheLargestAndTheLeastAreTaken) {
  TableOptions o = test::options(4, RowRule::kAdam);
  o.admit_count = 255;
  EXPECT_NO_THROW(GrowableTable("t", o));
  o.admit_count = 256;
  EXPECT_THROW(GrowableTable("t", o), Error);
  o = test::options(4, RowRule::kAdam);
  o.max_bytes = 1;
  int64_t least = 0;
  try {
    GrowableTable("t", o);
  } catch (const Error& e) {
    const std::string& text = e.message();
    const std::string before = "need at least ";
    least = std::stoll(text.substr(text.find(before) + before.size()));
  }
  const int64_t record = int64_t{4} * (1 + 2) * static_cast<int64_t>(sizeof(float));
  EXPECT_GE(least, (int64_t{64} << KeyOrder::kBits) * record) << "64 rows in each shard, with their moments";
  o.max_bytes = least - 1;
  EXPECT_THROW(GrowableTable("t", o), Error);
  o.max_bytes = least;
  GrowableTable table("t", o);
  test::pull(table, {1, 2, 3});
  EXPECT_EQ(table.stats().rows, 3);
}

TEST(TableShard, AKeyThatIsRestoredTwiceIsOneRowOfItsLastAge) {
  TableShard shard(test::options(2), nullptr);
  std::map<int64_t, float*> made;
  for (int64_t key = 0; key < 500; ++key) made[key] = shard.restore(key, static_cast<uint32_t>(key));
  for (int64_t key = 0; key < 500; key += 3) {
    EXPECT_EQ(shard.restore(key, static_cast<uint32_t>(1000 + key)), made[key]);
  }
  std::map<int64_t, uint32_t> seen;
  shard.each_row([&](int64_t key, uint32_t at, const float* record) {
    EXPECT_EQ(record, made[key]);
    EXPECT_TRUE(seen.emplace(key, at).second);
  });
  ASSERT_EQ(seen.size(), 500u);
  for (const auto& [key, at] : seen) EXPECT_EQ(at, key % 3 ? key : 1000 + key);
}

// Memory that ends with a page that must not be touched.
class BeforeTheEnd {
 public:
  explicit BeforeTheEnd(size_t bytes) {
    EXPECT_LE(bytes, kPage);
    all_ = static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(all_ + kPage, kPage, PROT_NONE), 0);
    begin_ = all_ + kPage - bytes;
  }
  ~BeforeTheEnd() { munmap(all_, 2 * kPage); }
  BeforeTheEnd(const BeforeTheEnd&) = delete;
  template <class T> T* as() const { return reinterpret_cast<T*>(begin_); }

 private:
  static constexpr size_t kPage = 4096;
  char *all_, *begin_;
};

TEST(RecordLoops, ReadNoGroupAfterTheLast) {
  for (const int64_t count : {1, 3, 20}) {
    const int64_t width = 5;
    const BeforeTheEnd groups(static_cast<size_t>(count) * sizeof(RecordGroup));
    std::vector<float> rows(static_cast<size_t>(count * width), 1.0f), grads(rows.size(), 2.0f);
    std::vector<uint32_t> seen(static_cast<size_t>(count));
    const std::vector<int32_t> next(static_cast<size_t>(count), -1);
    for (int64_t i = 0; i < count; ++i) {
      const auto place = static_cast<int32_t>(i);
      groups.as<RecordGroup>()[i] = {rows.data() + i * width, &seen[static_cast<size_t>(i)], 0, place, place};
    }
    RecordUpdate u = test::rule(RowRule::kSgd);
    u.rate = 0.25f;
    u.groups = groups.as<RecordGroup>();
    u.next = next.data();
    u.grads = grads.data();
    u.count = count;
    u.width = width;
    update_records(u);
    EXPECT_EQ(rows, std::vector<float>(rows.size(), 0.5f));
  }
}

}  // namespace
}  // namespace anabranch::sparse
