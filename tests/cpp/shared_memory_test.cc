// Messages through memory that processes share: threads stand for processes, and share as processes would.
#include "comm/shared_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "comm/collective.h"
#include "comm/shared_segment.h"

namespace anabranch::comm {
namespace {

constexpr int64_t kPatience = 20000;
using Wires = std::vector<std::unique_ptr<Wire>>;

void on_all(int size, const std::function<void(int)>& what) {
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back(what, r);
  for (auto& t : threads) t.join();
}

Wires shared_wires(int size, const SharingOptions& options) {
  Wires wires = local_wires(size);
  std::vector<std::string> failures(static_cast<size_t>(size));
  on_all(size, [&](int r) {
    auto& mine = wires[static_cast<size_t>(r)];
    mine = share_memory(std::move(mine), r, size, kPatience, &failures[static_cast<size_t>(r)], options);
  });
  for (const auto& why : failures) EXPECT_EQ(why, "");
  return wires;
}

std::vector<float> numbers(int rank, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(std::sin(static_cast<double>(i) * 7 + rank * 31) * std::pow(10, rank));
  }
  return out;
}

// Sums of all ranks, as each has them, over several sizes one after the other.
std::vector<std::vector<float>> sums(Wires wires, const std::vector<int64_t>& sizes) {
  const int size = static_cast<int>(wires.size());
  std::vector<std::string> endpoints;
  for (int r = 0; r < size; ++r) endpoints.push_back(fmt::format("host{}:1", r));
  std::vector<std::vector<float>> found(wires.size());
  on_all(size, [&](int r) {
    const auto me = static_cast<size_t>(r);
    Peers peers(r, endpoints, std::move(wires[me]), Milliseconds(kPatience));
    Collective collective;
    for (const int64_t n : sizes) {
      std::vector<float> mine = numbers(r, n);
      const Piece piece{mine.data(), n};
      What what(Verb::kAllReduce, DType::kFloat32, "x");
      what.add(Shape{n});
      collective.all_reduce(peers, what, Combine::kSum, std::span(&piece, 1));
      found[me].insert(found[me].end(), mine.begin(), mine.end());
    }
    collective.barrier(peers);  // nobody's memory goes while another one reads
  });
  return found;
}

TEST(SharedMemory, SumsHaveTheBitsOfTheWireBelow) {
  const std::vector<int64_t> sizes{1, 15, 16, 17, 1000, 4096, 4097, 100000, 3};
  SharingOptions o;
  o.least_bytes = 64;
  o.most_of_slot = 16384;  // 100,000 numbers go over the wire
  for (const int size : {2, 3, 4}) {
    const auto expected = sums(local_wires(size), sizes), found = sums(shared_wires(size, o), sizes);
    for (int r = 0; r < size; ++r) {
      const auto &a = expected[static_cast<size_t>(r)], &b = found[static_cast<size_t>(r)];
      ASSERT_EQ(a.size(), b.size());
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << size << " ranks, rank " << r;
    }
  }
}

TEST(SharedMemory, WhatFindsNoSlotGoesOverTheWire) {
  SharingOptions o;
  o.least_bytes = 8;
  o.most_of_slot = 64;
  Wires wires = shared_wires(2, o);
  std::vector<double> out{1, 2, 3, 4, 5}, in(5);
  const auto from = wires[0]->region(out.data(), 40), to = wires[1]->region(in.data(), 40);
  for (size_t i = 0; i < 5; ++i) ASSERT_EQ(from->send(1, 8 + 8 * i, 8 * i, 8), "");
  for (size_t i = 0; i < 5; ++i) ASSERT_EQ(to->receive(0, 8 + 8 * i, 8 * i, 8), "");
  for (int i = 0; i < 5; ++i) ASSERT_EQ(to->wait_received(kPatience), "");
  for (int i = 0; i < 5; ++i) ASSERT_EQ(from->wait_sent(kPatience), "");
  EXPECT_EQ(in, out);
}

TEST(SharedMemory, OneThatIsGoneEndsTheWait) {
  SharingOptions o;
  o.least_bytes = 8;
  Wires wires = shared_wires(2, o);
  double x = 0;
  const auto to = wires[1]->region(&x, 8);
  ASSERT_EQ(to->receive(0, 8, 0, 8), "");
  wires[0] = nullptr;
  EXPECT_NE(to->wait_received(kPatience), "");
}

TEST(SharedMemory, ASegmentIsOpenedByWhoKnowsItsSecretAlone) {
  const auto mine = Segment::make(2, 4096);
  ASSERT_NE(mine, nullptr);
  SegmentAddress a = mine->address();
  EXPECT_NE(Segment::open(a, 2), nullptr);
  const auto refused = [](SegmentAddress other) { return Segment::open(other, 2) == nullptr; };
  const auto changed = [&](auto&& change) {
    SegmentAddress other = a;
    change(other);
    return refused(other);
  };
  EXPECT_TRUE(changed([](auto& o) { ++o.secret[1]; }));
  EXPECT_TRUE(changed([](auto& o) { ++o.machine[0]; }));
  EXPECT_TRUE(changed([](auto& o) { o.fd = 0; }));
  EXPECT_TRUE(changed([](auto& o) { o.fd = 99999; }));
  EXPECT_TRUE(changed([](auto& o) { o.pid = -1; }));
  EXPECT_TRUE(changed([](auto& o) { o.slot_bytes *= 2; }));
  EXPECT_TRUE(changed([](auto& o) { o.bytes += 4096; }));
  EXPECT_TRUE(changed([](auto& o) { o.bytes = 0; }));
}

}  // namespace
}  // namespace anabranch::comm
