// Process flags: one table with name, type, default and meaning, read once from the environment (FLAGS_<name>) and
// changed later by set_flags, from any thread. Flags that the engine reads in a run cost one relaxed load; the others
// take a lock.
#pragma once
#include <string>
#include <variant>
#include <vector>

namespace anabranch {

using FlagValue = std::variant<bool, int64_t, double, std::string>;

struct FlagInfo {
  std::string name;  // with the prefix FLAGS_
  FlagValue value;   // the current one
  FlagValue initial;
  std::string doc;
  bool in_plans = false;  // read when a plan is made
};

std::vector<FlagInfo> all_flags();
// InvalidArgument for an unknown name or a text that does not parse as the flag's type.
FlagValue get_flag(const std::string& name);
void set_flag(const std::string& name, const FlagValue& value);
void set_flag_text(const std::string& name, const std::string& text);
// One sentence for each FLAGS_* of the environment that names no flag or does not parse.
const std::vector<std::string>& environment_flag_warnings();

struct Flags {  // the flags that the engine reads, typed
  static bool check_nan_inf();
  static bool benchmark();
  static bool flush_denormals();
  static bool exact_fluid();  // FLAGS_fluid_exact == "1.8.5"
  static double stall_report_s();
  static bool measure_threads();
  static int64_t max_loop_iterations();  // 0: no limit
  static int64_t memory_limit_mb();      // 0: none
  static int64_t plan_cache_size();
  static int64_t spin_us();
  static int64_t device_deadline();
  static uint64_t plan_epoch();  // increases when a flag that plans depend on changes; older plans are rebuilt
};

}  // namespace anabranch
