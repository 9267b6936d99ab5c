// Messages as bytes: they come back as they were, and hostile ones are refused.
#include <gtest/gtest.h>

#include <random>

#include "ps_cluster.h"

namespace anabranch::ps {
namespace {

std::shared_ptr<char> copy_of(const Message& m, size_t shift = 0) {
  std::shared_ptr<char> bytes(static_cast<char*>(std::aligned_alloc(64, (m.bytes().size() / 64 + 2) * 64)), std::free);
  std::copy(m.bytes().begin(), m.bytes().end(), bytes.get() + shift);
  return {bytes, bytes.get() + shift};
}

TEST(PsMessage, ComesBackAsItWas) {
  Message m(Verb::kExchange);
  m.add(3, filled(2.5F, 7));
  const int64_t ids[] = {5, -1, 5};
  const float values[] = {1, 2, 3, 4, 5, 6};
  m.add_rows(4, ids, 10, values, DType::kFloat32, 2);
  m.add_text("text");
  const uint32_t needed[] = {1, 2, 3};
  m.add_needed(needed);
  for (const size_t shift : {size_t{0}, size_t{8}}) {
    const MessageRef back = Message::parse(copy_of(m, shift), m.bytes().size());
    ASSERT_EQ(back->parts(), 5);
    EXPECT_EQ(Message::tensor(back, 0).data<float>()[6], 2.5F);
    EXPECT_EQ(back->ids(1)[1], -1);
    EXPECT_EQ(Message::tensor(back, 2).shape(), (Shape{3, 2}));
    EXPECT_EQ(back->part(2).height, 10);
    EXPECT_EQ(back->text(3), "text");
    EXPECT_EQ(back->needed(4)[2], 3U);
  }
}

// Any byte changed, any length: refused with a typed error, or read within its bounds.
TEST(PsMessage, HostileBytesAreRefused) {
  Message m(Verb::kExchange);
  m.add(3, filled(2.5F, 7));
  const int64_t ids[] = {5, 6};
  m.add_ids(1, ids);
  m.add_text("text");
  const size_t size = m.bytes().size();
  std::mt19937 rng(7);
  int refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const auto bytes = copy_of(m);
    for (unsigned k = 1 + rng() % 3; k > 0; --k) bytes.get()[rng() % size] = static_cast<char>(rng());
    const size_t length = rng() % 4 == 0 ? rng() % (size + 1) : size;
    std::shared_ptr<char> exact(static_cast<char*>(std::aligned_alloc(64, (length / 64 + 1) * 64)), std::free);
    std::copy(bytes.get(), bytes.get() + length, exact.get());
    try {
      const MessageRef parsed = Message::parse(exact, length);
      for (int i = 0; i < parsed->parts(); ++i) {
        int64_t sum = 0;
        for (uint64_t b = 0; b < parsed->part(i).bytes; ++b) sum += parsed->payload(i)[b];
        EXPECT_GE(std::abs(sum), 0);
      }
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument) << e.message();
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace anabranch::ps
