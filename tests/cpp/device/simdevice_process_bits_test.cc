// Collectives of ranks in several processes: they have the bits of the same ranks in one process.
#include <numeric>
#include <random>

#include "ops/device/half.h"
#include "processes.h"

namespace anabranch::device {
namespace {

const std::vector<int> kFloats{AB_FLOAT16, AB_BFLOAT16, AB_FLOAT32, AB_FLOAT64};
const std::vector<int> kSummed{AB_INT8, AB_UINT8, AB_INT32, AB_INT64, AB_FLOAT16, AB_BFLOAT16, AB_FLOAT32, AB_FLOAT64};
const std::vector<int> kMoved{AB_BOOL, AB_INT16, AB_INT8, AB_FLOAT16, AB_FLOAT64};

size_t size_of(int dtype) {
  switch (dtype) {
    case AB_BOOL:
    case AB_INT8:
    case AB_UINT8: return 1;
    case AB_INT16:
    case AB_FLOAT16:
    case AB_BFLOAT16: return 2;
    case AB_INT32:
    case AB_FLOAT32: return 4;
    default: return 8;
  }
}

template <class T> void put(std::vector<char>& to, size_t i, double x) {
  const T value = static_cast<T>(x);
  memcpy(to.data() + i * sizeof(T), &value, sizeof value);
}

// Numbers whose sums depend on their order, where they are not integers.
std::vector<char> numbers(int rank, size_t n, int dtype) {
  std::mt19937 random(static_cast<unsigned>(rank * 7919 + dtype));
  std::vector<char> bytes(n * size_of(dtype));
  for (size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(random()) / 4294967296.0;
    const double wide = (x - 0.4) * (rank % 2 ? 1e-2 : 3);
    switch (dtype) {
      case AB_BOOL: put<bool>(bytes, i, x > 0.5); break;
      case AB_INT8: put<int8_t>(bytes, i, x * 20 - 10); break;
      case AB_UINT8: put<uint8_t>(bytes, i, x * 20); break;
      case AB_INT16: put<int16_t>(bytes, i, x * 2000 - 1000); break;
      case AB_INT32: put<int32_t>(bytes, i, x * 100 - 50); break;
      case AB_INT64: put<int64_t>(bytes, i, x * 100 - 50); break;
      case AB_FLOAT16: put<half>(bytes, i, static_cast<float>(wide)); break;
      case AB_BFLOAT16: put<bfloat16>(bytes, i, static_cast<float>(wide)); break;
      case AB_FLOAT32: put<float>(bytes, i, wide); break;
      default: put<double>(bytes, i, wide);
    }
  }
  return bytes;
}

uint64_t sum_of(const char* bytes, size_t size) {  // FNV-1a
  uint64_t sum = 14695981039346656037U;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ static_cast<unsigned char>(bytes[i])) * 1099511628211U;
  return sum;
}

struct Case {
  ab_collective what;
  size_t n;
  int dtype;
};

std::vector<Case> small_cases() {
  std::vector<Case> all;
  for (int what = AB_ALL_REDUCE_SUM; what <= AB_REDUCE_SCATTER; ++what) {
    const bool moves = what == AB_BROADCAST || what == AB_ALL_GATHER;
    for (const int dtype : moves ? kMoved : kSummed) {
      for (const size_t n : {size_t{1}, size_t{7}, size_t{1000}}) {
        if (what == AB_ALL_REDUCE_PROD && dtype < AB_FLOAT16) continue;  // out of range
        all.push_back({static_cast<ab_collective>(what), n, dtype});
      }
    }
  }
  return all;
}

std::vector<Case> growing_cases() {
  std::vector<Case> all;
  for (const size_t n : {size_t{300'000}, size_t{3}, size_t{700'000}, size_t{1000}}) {
    for (const ab_collective what : {AB_ALL_REDUCE_SUM, AB_BROADCAST, AB_ALL_GATHER, AB_REDUCE_SCATTER}) {
      all.push_back({what, n, AB_FLOAT32});
    }
  }
  return all;
}

// The results of each rank in each case, for processes of `ranks` ranks each. 0: none.
using Sums = std::vector<std::vector<uint64_t>>;
Sums outcome(const std::vector<int>& layout, const std::vector<Case>& cases, size_t room) {
  const int all = std::accumulate(layout.begin(), layout.end(), 0);
  Sums sums(static_cast<size_t>(all), std::vector<uint64_t>(cases.size()));
  Page* page_of_all = Page::make();
  in_processes(static_cast<int>(layout.size()), [&](int process, Page& page) {
    const int first = std::accumulate(layout.begin(), layout.begin() + process, 0);
    Flags flags = seeded(static_cast<uint64_t>(process));
    flags["simdevice_bytes"] = std::to_string(4 * room);
    Members m(page, first, layout[static_cast<size_t>(process)], all, flags, room);
    for (size_t at = 0; at < cases.size(); ++at) {
      const auto& [what, n, dtype] = cases[at];
      const int root = static_cast<int>(at) % all;
      const size_t parts = static_cast<size_t>(all);
      for (int k = 0; k < m.count(); ++k) {
        const auto given = numbers(m.rank(k), what == AB_REDUCE_SCATTER ? n * parts : n, dtype);
        m.give(k, given.data(), given.size());
      }
      EXPECT_EQ(m.run(what, n, dtype, root), AB_OK) << m.last;
      const size_t bytes = size_of(dtype) * (what == AB_ALL_GATHER ? n * parts : n);
      for (int k = 0; k < m.count(); ++k) {
        const uint64_t sum = sum_of(m.held(k, bytes), bytes);
        if (what != AB_REDUCE_SUM || m.rank(k) == root) page_of_all->sums[m.rank(k)][at] = sum;
      }
    }
  });
  for (size_t rank = 0; rank < sums.size(); ++rank) {
    for (size_t at = 0; at < cases.size(); ++at) sums[rank][at] = page_of_all->sums[rank][at];
  }
  munmap(page_of_all, sizeof(Page));
  return sums;
}

void expect_the_same(const std::vector<std::vector<int>>& layouts, const std::vector<Case>& cases, size_t room) {
  std::map<int, Sums> expected;  // by the number of ranks: of all in one process
  for (const auto& layout : layouts) {
    const int all = std::accumulate(layout.begin(), layout.end(), 0);
    Sums& one = expected[all];
    if (one.empty()) one = outcome({all}, cases, room);
    const Sums several = outcome(layout, cases, room);
    for (size_t at = 0; at < cases.size(); ++at) {
      for (size_t rank = 0; rank < several.size(); ++rank) {
        EXPECT_EQ(several[rank][at], one[rank][at]) << testing::PrintToString(layout) << " what " << cases[at].what
                                                    << " n " << cases[at].n << " dtype " << cases[at].dtype;
        EXPECT_TRUE(one[rank][at] || cases[at].what == AB_REDUCE_SUM) << "it has received something";
      }
    }
  }
}

TEST(SimdeviceProcessBits, AnySplitHasTheBitsOfOneProcess) {
  expect_the_same({{1, 1}, {2, 2}, {1, 3}, {3, 1}, {1, 1, 1, 1}, {2, 1, 3, 2}}, small_cases(), size_t{1} << 17);
}

TEST(SimdeviceProcessBits, PartsMayGrowAndShrink) {
  expect_the_same({{1, 1}, {1, 2}}, growing_cases(), size_t{9} << 20);
}

}  // namespace
}  // namespace anabranch::device
