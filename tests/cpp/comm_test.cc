// Threads that stand for processes compute together.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "comm/group.h"
#include "comm/share_memory.h"

namespace anabranch::comm {
namespace {

using Groups = std::vector<std::unique_ptr<Group>>;

Groups groups_of(int size, int deadline_ms = 20000) {
  Groups groups;
  std::vector<std::string> endpoints;
  for (int r = 0; r < size; ++r) endpoints.push_back(fmt::format("host{}:1", r));
  auto wires = local_wires(size);
  for (int r = 0; r < size; ++r) {
    groups.push_back(
        std::make_unique<Group>(std::make_unique<Peers>(r, endpoints, std::move(wires[r]), Milliseconds(deadline_ms))));
  }
  return groups;
}

// The error of each rank's call; "": none.
std::vector<std::string> on_all(Groups& groups, const std::function<void(int, Peers&)>& what) {
  std::vector<std::string> errors(groups.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < groups.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        groups[r]->call([&](Peers& peers) { what(static_cast<int>(r), peers); });
      } catch (const Error& e) {
        errors[r] = e.message();
      }
    });
  }
  for (auto& t : threads) t.join();
  return errors;
}

// The groups of processes that have to send messages, and of those that share memory.
class Comm : public testing::TestWithParam<bool> {
 public:
  static Groups groups(int size, int deadline_ms = 20000) {
    Groups made = groups_of(size, deadline_ms);
    on_all(made, [](int, Peers& peers) { EXPECT_EQ(share_memory(peers, GetParam()), GetParam()); });
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, Comm, testing::Bool(),
                         [](const auto& way) { return way.param ? "SharedMemory" : "Messages"; });

template <class T> std::vector<T> numbers(int rank, int64_t n) {
  std::vector<T> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(std::sin(double(i * 7 + rank * 31)) * std::pow(10, rank));
  return out;
}

What about(CollectiveKind verb, DType dtype, const Shape& shape, const char* name = "x") {
  What what(verb, dtype, name);
  what.add(shape);
  return what;
}

void expect_fine(const std::vector<std::string>& errors) {
  for (const auto& e : errors) EXPECT_EQ(e, "");
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T> void check_all_reduce(int size, int64_t n, Combine how) {
  Groups groups = Comm::groups(size);
  std::vector<std::vector<T>> data(size);
  for (int r = 0; r < size; ++r) data[r] = numbers<T>(r, n);
  std::vector<T> expected = data[0];
  for (int r = 1; r < size; ++r) combine(how, dtype_of<T>, expected.data(), data[r].data(), n);
  expect_fine(on_all(groups, [&](int r, Peers& peers) {
    Collective c;
    const Chunk chunk{data[r].data(), n};
    c.all_reduce(peers, about(CollectiveKind::kAllReduce, dtype_of<T>, Shape{n}), how, {&chunk, 1});
  }));
  for (int r = 0; r < size; ++r) EXPECT_TRUE(same_bits(data[r], expected)) << r;
}

TEST_P(Comm, SumsAreTakenInTheOrderOfRanks) {
  for (int size : {1, 2, 3, 4, 7}) {
    for (int64_t n : {0, 1, 2, 5, 3000, 40001, 200003}) {
      check_all_reduce<float>(size, n, Combine::kSum);
      check_all_reduce<double>(size, n, Combine::kSum);
    }
  }
  for (Combine how : {Combine::kProd, Combine::kMax, Combine::kMin}) {
    check_all_reduce<float>(3, 30000, how);
    check_all_reduce<int32_t>(3, 100, how);
    check_all_reduce<int64_t>(4, 20000, how);
  }
}

TEST(Groups, ANumberThatIsNoneStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Combine how : {Combine::kMax, Combine::kMin}) {
    float a[] = {nan, 1, 2}, b[] = {1, nan, 3};
    combine(how, DType::kFloat32, a, b, 3);
    EXPECT_TRUE(std::isnan(a[0]) && std::isnan(a[1]));
    EXPECT_EQ(a[2], how == Combine::kMax ? 3 : 2);
  }
  int32_t most = std::numeric_limits<int32_t>::max();
  const int32_t one = 1;
  combine(Combine::kSum, DType::kInt32, &most, &one, 1);
  EXPECT_EQ(most, std::numeric_limits<int32_t>::min());
}

TEST_P(Comm, SeveralTensorsShareAMeeting) {
  Groups groups = Comm::groups(3);
  std::vector<std::vector<float>> a(3), b(3);
  for (int r = 0; r < 3; ++r) a[r] = {float(r), 1}, b[r] = {10, 20, float(r * r)};
  expect_fine(on_all(groups, [&](int r, Peers& peers) {
    Collective c;
    What what(CollectiveKind::kAllReduce, DType::kFloat32, "a");
    what.add(Shape{2});
    what.add(Shape{3});
    for (int meeting = 0; meeting < 2; ++meeting) {  // the second time in the same memory
      const Chunk chunks[] = {{a[r].data(), 2}, {b[r].data(), 3}};
      c.all_reduce(peers, what, Combine::kSum, chunks);
    }
  }));
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(a[r], (std::vector<float>{9, 9}));
    EXPECT_EQ(b[r], (std::vector<float>{90, 180, 15}));
  }
}

// Of all sizes, so that they begin and end anywhere in what travels at once.
TEST_P(Comm, ManyTensorsShareAMeeting) {
  for (const int size : {2, 3, 5}) {
    Groups groups = Comm::groups(size);
    const std::vector<int64_t> elems = {70001, 1, 0, 3 * 65536 + 5, 3, 65536};
    std::vector<std::vector<std::vector<float>>> data(size);
    for (int r = 0; r < size; ++r) {
      for (size_t i = 0; i < elems.size(); ++i) data[r].push_back(numbers<float>(r + static_cast<int>(i), elems[i]));
    }
    std::vector<std::vector<float>> expected = data[0];
    for (int r = 1; r < size; ++r) {
      for (size_t i = 0; i < elems.size(); ++i) {
        combine(Combine::kSum, DType::kFloat32, expected[i].data(), data[r][i].data(), elems[i]);
      }
    }
    expect_fine(on_all(groups, [&](int r, Peers& peers) {
      What what(CollectiveKind::kAllReduce, DType::kFloat32, "a");
      std::vector<Chunk> chunks;
      for (auto& one : data[r]) {
        what.add(Shape{static_cast<int64_t>(one.size())});
        chunks.push_back({one.data(), static_cast<int64_t>(one.size())});
      }
      Collective().all_reduce(peers, what, Combine::kSum, chunks);
    }));
    for (int r = 0; r < size; ++r) {
      for (size_t i = 0; i < elems.size(); ++i) EXPECT_TRUE(same_bits(data[r][i], expected[i])) << r << " " << i;
    }
  }
}

TEST_P(Comm, CopiesAndParts) {
  constexpr int kSize = 3;
  Groups groups = Comm::groups(kSize);
  std::vector<std::vector<int64_t>> copied(kSize), summed(kSize), all(kSize), part(kSize), rows(kSize);
  expect_fine(on_all(groups, [&](int r, Peers& peers) {
    Collective c;
    copied[r] = {r, r};
    c.broadcast(peers, about(CollectiveKind::kBroadcast, DType::kInt64, Shape{2}), 2, {copied[r].data(), 2});
    summed[r] = {r + 1};
    c.reduce(peers, about(CollectiveKind::kReduce, DType::kInt64, Shape{1}), Combine::kSum, 1, {summed[r].data(), 1});
    std::vector<int64_t> mine = {r, 10 * r};
    all[r].resize(6);
    c.all_gather(peers, about(CollectiveKind::kAllGather, DType::kInt64, Shape{2}), {mine.data(), 2},
                 {all[r].data(), 6});
    std::vector<int64_t> whole = {1, 2, 3};
    part[r].resize(1);
    c.reduce_scatter(peers, about(CollectiveKind::kReduceScatter, DType::kInt64, Shape{3}), Combine::kSum,
                     {whole.data(), 3}, {part[r].data(), 1});
    const int64_t count = r;
    c.agree(peers, What(CollectiveKind::kAllGatherRows, DType::kInt64, "ids"), &count, sizeof(count));
    std::vector<size_t> bytes(kSize);
    for (int k = 0; k < kSize; ++k) bytes[k] = *static_cast<const int64_t*>(c.note(k)) * sizeof(int64_t);
    rows[r].resize(3);
    const std::vector<int64_t> given(r, r);
    c.gather(peers, given.data(), reinterpret_cast<char*>(rows[r].data()), bytes, 3);
    c.barrier(peers);
  }));
  for (int r = 0; r < kSize; ++r) {
    EXPECT_EQ(copied[r], (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(summed[r][0], r == 1 ? 6 : r + 1);
    EXPECT_EQ(all[r], (std::vector<int64_t>{0, 0, 1, 10, 2, 20}));
    EXPECT_EQ(part[r][0], 3 * (r + 1));
    EXPECT_EQ(rows[r], (std::vector<int64_t>{1, 2, 2}));
  }
}

TEST_P(Comm, EachGivesEachAPart) {
  constexpr int kSize = 3;
  Groups groups = Comm::groups(kSize);
  std::vector<std::vector<std::string>> given(kSize);
  expect_fine(on_all(groups, [&](int r, Peers& peers) {
    std::vector<std::string> parts;
    for (int k = 0; k < kSize; ++k) parts.push_back(std::string(r * k, static_cast<char>('a' + r)));
    given[r] = Collective().exchange(peers, {parts.begin(), parts.end()});
  }));
  for (int r = 0; r < kSize; ++r) {
    EXPECT_EQ(given[r], (std::vector<std::string>{"", std::string(r, 'b'), std::string(2 * r, 'c')}));
  }
}

TEST_P(Comm, DisagreementsAreReportedAndTheGroupStillWorks) {
  Groups groups = Comm::groups(3);
  const auto errors = on_all(groups, [&](int r, Peers& peers) {
    std::vector<float> data(r == 1 ? 6 : 5);
    Collective c;
    const Chunk chunk{data.data(), static_cast<int64_t>(data.size())};
    c.all_reduce(peers, about(CollectiveKind::kAllReduce, DType::kFloat32, Shape{chunk.elems}, "w@GRAD"), Combine::kSum,
                 {&chunk, 1});
  });
  for (const auto& e : errors) {
    EXPECT_EQ(e, errors[0]);
    EXPECT_NE(e.find("rank 1 (host1:1) has all_reduce sum of 6 numbers float32, w@GRAD [6]"), std::string::npos) << e;
  }
  const auto dtypes = on_all(groups, [&](int r, Peers& peers) {
    double data = 1;
    Collective c;
    c.broadcast(peers, about(CollectiveKind::kBroadcast, r ? DType::kFloat64 : DType::kInt64, Shape{1}), 0, {&data, 1});
  });
  for (const auto& e : dtypes) EXPECT_NE(e.find("disagree"), std::string::npos) << e;
  expect_fine(on_all(groups, [](int, Peers& peers) { Collective().barrier(peers); }));
}

TEST(Groups, SameNumbersInOtherShapesDisagree) {
  EXPECT_FALSE(about(CollectiveKind::kAllReduce, DType::kFloat32, Shape{2, 3})
                   .agrees_with(about(CollectiveKind::kAllReduce, DType::kFloat32, Shape{3, 2})));
  EXPECT_TRUE(about(CollectiveKind::kAllReduce, DType::kFloat32, Shape{2, 3}, "a")
                  .agrees_with(about(CollectiveKind::kAllReduce, DType::kFloat32, Shape{2, 3}, "b")));
  const std::string text =
      about(CollectiveKind::kAllReduce, DType::kFloat32, Shape{2, 3}, std::string(300, 'n').c_str()).str();
  EXPECT_NE(text.find("n [2, 3]"), std::string::npos) << text;
}

TEST_P(Comm, MissingProcessesAreNamed) {
  Groups groups = Comm::groups(2, 50);
  const auto errors = on_all(groups, [](int r, Peers& peers) {
    if (r == 1) return;
    Collective().barrier(peers);
  });
  EXPECT_NE(errors[0].find("barrier of rank 0 (host0:1): rank 1 (host1:1) has not come"), std::string::npos)
      << errors[0];
  const auto again = on_all(groups, [](int r, Peers& peers) {
    if (r == 0) Collective().barrier(peers);
  });
  EXPECT_EQ(again[0], errors[0]);  // a failure is final
}

TEST_P(Comm, LeavingProcessesAreNamed) {
  Groups groups = Comm::groups(3);
  groups[2] = nullptr;
  groups.pop_back();
  const auto errors = on_all(groups, [](int, Peers& peers) { Collective().barrier(peers); });
  EXPECT_NE(errors[0].find("rank 2 (host2:1) is gone"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("rank 2 (host2:1) is gone"), std::string::npos) << errors[1];
}

TEST_P(Comm, AFailureEndsAWait) {
  Groups groups = Comm::groups(2);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    groups[0]->fail("a rank has failed");
  });
  const auto errors = on_all(groups, [](int r, Peers& peers) {
    if (r == 0) Collective().barrier(peers);
  });
  later.join();
  EXPECT_EQ(errors[0], "a rank has failed");
}

TEST(Groups, RingsAreKeptByNumber) {
  EXPECT_THROW(ring(7), Error);
  Groups groups = groups_of(1);
  keep_ring(7, std::move(groups[0]));
  EXPECT_EQ(ring(7)->size(), 1);
  EXPECT_THROW(keep_ring(7, std::move(groups_of(1)[0])), Error);
  ring(7)->fail("over");
  keep_ring(7, std::move(groups_of(1)[0]));
  EXPECT_EQ(ring(7)->failure(), "");
  forget_rings();
  EXPECT_EQ(find_ring(7), nullptr);
}

}  // namespace
}  // namespace anabranch::comm
