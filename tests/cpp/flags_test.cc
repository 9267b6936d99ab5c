#include "base/flags.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/error.h"

namespace anabranch {
namespace {

TEST(Flags, PlansAreOldWhenAFlagThatTheyFollowChanges) {
  const uint64_t before = Flags::plan_epoch();
  set_flag("FLAGS_stall_report_s", 30.0);
  set_flag("FLAGS_check_nan_inf", true);
  set_flag("FLAGS_check_nan_inf", false);
  set_flag("FLAGS_disable_passes", std::string(""));
  EXPECT_EQ(Flags::plan_epoch(), before) << "no plan follows them, or nothing changed";
  set_flag("FLAGS_disable_passes", std::string("all"));
  EXPECT_EQ(Flags::plan_epoch(), before + 1);
  set_flag("FLAGS_disable_passes", std::string(""));
  EXPECT_EQ(Flags::plan_epoch(), before + 2);
}

TEST(Flags, AreReadWhileTheyAreSet) {
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      Flags::exact_fluid();
      const auto text = std::get<std::string>(get_flag("FLAGS_allocator_strategy"));
      EXPECT_TRUE(text == "auto_growth" || text == "a much longer text that needs its own memory") << text;
      EXPECT_FALSE(all_flags().empty());
    }
  });
  for (int i = 0; i < 2000; ++i) {
    set_flag("FLAGS_fluid_exact", std::string(i % 2 ? "" : "1.8.5"));
    set_flag("FLAGS_allocator_strategy",
             std::string(i % 2 ? "auto_growth" : "a much longer text that needs its own memory"));
  }
  stop = true;
  reader.join();
  EXPECT_FALSE(Flags::exact_fluid());
}

TEST(Flags, TextsAreChecked) {
  EXPECT_THROW(set_flag_text("FLAGS_plan_cache_size", "99999999999999999999"), Error);
  EXPECT_THROW(set_flag_text("FLAGS_plan_cache_size", "4x"), Error);
  EXPECT_THROW(set_flag_text("FLAGS_check_nan_inf", "on"), Error);
  EXPECT_EQ(Flags::plan_cache_size(), 64);
}

TEST(Flags, TruthHasThreeSpellings) {
  const char* name = "FLAGS_check_nan_inf";
  for (const char* text : {"1", "true", "Yes", "TRUE"}) {
    set_flag_text(name, "0");
    set_flag_text(name, text);
    EXPECT_TRUE(Flags::check_nan_inf()) << text;
  }
  for (const char* text : {"0", "false", "No", "FALSE"}) {
    set_flag_text(name, "1");
    set_flag_text(name, text);
    EXPECT_FALSE(Flags::check_nan_inf()) << text;
  }
}

}  // namespace
}  // namespace anabranch
