// Places of blocks and errors: the error that is known and lies first says how far anybody still has to go.
#include "data/in_order.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace anabranch::data {
namespace {

Ready error(const char* text) { return {nullptr, std::make_exception_ptr(std::runtime_error(text))}; }

TEST(InOrder, NoReaderGoesOnAfterTheFirstError) {
  InOrder order(3);
  EXPECT_TRUE(order.needed({2, 0}));
  order.put({1, 1}, error("early"));
  order.put({2, 0}, error("late"));
  EXPECT_TRUE(order.needed({0, 7}));
  EXPECT_TRUE(order.needed({1, 0}));
  EXPECT_FALSE(order.needed({1, 1}));
  EXPECT_FALSE(order.needed({1, 2}));
  order.put({0, 3}, error("earliest"));
  EXPECT_FALSE(order.needed({1, 0}));
  EXPECT_TRUE(order.needed({0, 2}));
}

TEST(InOrder, BlocksAndErrorsComeOutInOrder) {
  InOrder order(3);
  order.put({0, 1}, error("b"));
  EXPECT_FALSE(order.ready());
  order.put({0, 0}, error("a"));
  std::string text;
  const auto take = [&] {
    try {
      std::rethrow_exception(order.take().error);
    } catch (const std::runtime_error& e) {
      text += e.what();
    }
  };
  while (order.ready()) take();
  EXPECT_EQ(text, "ab");
  order.end_of_file(1, 0);  // a file without any
  order.put({2, 0}, error("c"));
  EXPECT_FALSE(order.ready()) << "it is not known that the first file has ended";
  order.end_of_file(0, 2);
  ASSERT_TRUE(order.ready());
  take();
  EXPECT_EQ(text, "abc");
  order.end_of_file(2, 1);
  EXPECT_FALSE(order.ready());
}

}  // namespace
}  // namespace anabranch::data
