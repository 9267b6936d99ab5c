// Numbers with their nouns in reports and errors.
#include "base/counted.h"

#include <gtest/gtest.h>

namespace anabranch {
namespace {

TEST(CountedTest, OneIsSingular) {
  EXPECT_EQ(counted(0, "change"), "0 changes");
  EXPECT_EQ(counted(1, "change"), "1 change");
  EXPECT_EQ(counted(2, "change"), "2 changes");
  EXPECT_EQ(counted(-1, "column"), "-1 columns");
}

TEST(CountedTest, NounsWithAnotherPlural) {
  EXPECT_EQ(counted(1, "copy", "copies"), "1 copy");
  EXPECT_EQ(counted(12, "copy", "copies"), "12 copies");
}

}  // namespace
}  // namespace anabranch
