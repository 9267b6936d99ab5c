// Checks of ids: the first wrong one is found, wherever it is, and nothing else is.
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "ops/kernels/ids.h"

namespace anabranch {
namespace {

std::string message(const std::vector<int64_t>& ids, int64_t height, int64_t allowed) {
  try {
    check_ids("test: Ids", ids.data(), static_cast<int64_t>(ids.size()), height, allowed);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST(Ids, TheFirstWrongOneIsNamed) {
  for (const int64_t n : {1, 2, 511, 512, 513, 1500}) {
    for (const int64_t wrong : {int64_t{-1}, int64_t{-9}, int64_t{7}, INT64_MAX, INT64_MIN}) {
      for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
        std::vector<int64_t> ids(static_cast<size_t>(n), 6);
        ids[static_cast<size_t>(at)] = wrong;
        ids.back() = at == n - 1 ? wrong : 8;  // a later one, which must not be named
        for (const int64_t allowed : {-1, 0, 9}) {
          const std::string found = message(ids, 7, allowed);
          EXPECT_NE(found.find("of sample " + std::to_string(at) + " is " + std::to_string(wrong)), std::string::npos)
              << found << " " << n << " " << at << " " << allowed;
        }
      }
    }
  }
}

TEST(Ids, OneMoreMayBeAllowed) {
  EXPECT_EQ(message({0, 6, 9, 6}, 7, 9), "");
  EXPECT_NE(message({0, 6, 9, 6}, 7, -1), "");
  EXPECT_EQ(message({}, 0, -1), "");
  EXPECT_EQ(message({3, 3}, 0, 3), "");
  for (const int64_t id : {-1, 0, 1}) EXPECT_NE(message({id}, 0, -1), "") << id;
}

}  // namespace
}  // namespace anabranch
