#include "ir/attr.h"

#include <gtest/gtest.h>

#include <cmath>

namespace anabranch {
namespace {

using Ints = std::vector<int32_t>;
using Longs = std::vector<int64_t>;
using Floats = std::vector<float>;

TEST(Attr, AlternativesStandInTheOrderOfTheFileFormat) {
  EXPECT_EQ(attr_type(Attr(int32_t{1})), AttrType::kInt);
  EXPECT_EQ(attr_type(Attr(std::string("x"))), AttrType::kString);
  EXPECT_EQ(attr_type(Attr(true)), AttrType::kBoolean);
  EXPECT_EQ(attr_type(Attr(BlockRef{1})), AttrType::kBlock);
  EXPECT_EQ(attr_type(Attr(Longs{})), AttrType::kLongs);
  EXPECT_STREQ(attr_type_name(AttrType::kLongs), "LONGS");
}

TEST(Attr, ConvertsWhereNothingIsLost) {
  EXPECT_EQ(convert_attr("a", int32_t{7}, AttrType::kLong), Attr(int64_t{7}));
  EXPECT_EQ(convert_attr("a", int64_t{7}, AttrType::kInt), Attr(int32_t{7}));
  EXPECT_EQ(convert_attr("a", int32_t{7}, AttrType::kFloat), Attr(7.0f));
  EXPECT_EQ(convert_attr("a", true, AttrType::kInt), Attr(int32_t{1}));
  EXPECT_EQ(convert_attr("a", int32_t{0}, AttrType::kBoolean), Attr(false));
  EXPECT_EQ(convert_attr("a", Ints{1, 2}, AttrType::kLongs), Attr(Longs{1, 2}));
  EXPECT_EQ(convert_attr("a", Ints{1, 2}, AttrType::kFloats), Attr(Floats{1, 2}));
  EXPECT_EQ(convert_attr("a", Floats{}, AttrType::kStrings), Attr(std::vector<std::string>{}));
}

void expect_refused(const Attr& attr, AttrType type) {
  try {
    convert_attr("axis", attr, type);
    ADD_FAILURE() << attr_str(attr) << " became " << attr_type_name(type);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(e.message().find("axis"), std::string::npos);
  }
}

TEST(Attr, RefusesWhatWouldChangeTheValue) {
  expect_refused(int64_t{1} << 40, AttrType::kInt);
  expect_refused(int32_t{(1 << 24) + 1}, AttrType::kFloat);
  expect_refused(1.5f, AttrType::kInt);
  expect_refused(1.0f, AttrType::kBoolean);
  expect_refused(int32_t{2}, AttrType::kBoolean);
  expect_refused(std::string("1"), AttrType::kInt);
  expect_refused(int32_t{1}, AttrType::kInts);
  expect_refused(Longs{1, int64_t{1} << 40}, AttrType::kInts);
  expect_refused(int32_t{1}, AttrType::kBlock);
}

TEST(Attr, Prints) {
  EXPECT_EQ(attr_str(Ints{1, -2}), "[1, -2]");
  EXPECT_EQ(attr_str(0.5f), "0.5");
  EXPECT_EQ(attr_str(std::string("a \"b\"\n")), "\"a \\\"b\\\"\\n\"");
  EXPECT_EQ(attr_str(std::vector<bool>{true, false}), "[true, false]");
  EXPECT_EQ(attr_str(BlockRef{3}), "block 3");
}

TEST(Attr, AccessNamesBothTypes) {
  try {
    attr_as<float>("alpha", Attr(int32_t{1}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "attribute alpha must be of type FLOAT, got INT");
  }
}

}  // namespace
}  // namespace anabranch
