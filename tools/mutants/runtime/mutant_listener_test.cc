// Writes a line for each C++ test when sites are noted: its name, seconds, whether it passed, the sites it reached.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace {

class Listener : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { ab_mutant_take(hits_); }
  void OnTestEnd(const testing::TestInfo& test) override {
    ab_mutant_take(hits_);
    std::FILE* file = std::fopen(std::getenv("AB_MUTANT_MAP"), "a");
    if (!file) return;
    std::fprintf(file, "{\"test\": \"%s.%s\", \"s\": %.3f, \"ok\": %s, \"hits\": [", test.test_suite_name(), test.name(),
                 static_cast<double>(test.result()->elapsed_time()) / 1000, test.result()->Passed() ? "true" : "false");
    const char* comma = "";
    for (int n = 0; n < anabranch::kMaxMutants; ++n) {
      if (!hits_[n]) continue;
      std::fprintf(file, "%s%d", comma, n);
      comma = ", ";
    }
    std::fprintf(file, "]}\n");
    std::fclose(file);
  }
  unsigned char hits_[anabranch::kMaxMutants];
};

[[maybe_unused]] const bool listens = [] {
  if (anabranch::mutant_active < 0 && std::getenv("AB_MUTANT_MAP"))
    testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  return true;
}();

}  // namespace
