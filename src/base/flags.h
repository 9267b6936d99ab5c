// Process flags: one table with name, type, default and meaning, read once from the environment (FLAGS_<name>), set
// later by set_flags. Reading a flag is a plain load; code that needs speed keeps the value when it makes a plan.
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
};

const std::vector<FlagInfo>& all_flags();
// InvalidArgument for an unknown name (with the nearest one) or a text that is no value of the flag's type.
const FlagValue& get_flag(const std::string& name);
void set_flag(const std::string& name, const FlagValue& value);
void set_flag_text(const std::string& name, const std::string& text);
// Names of FLAGS_* in the environment that no flag has, for a warning at import.
std::vector<std::string> unknown_environment_flags();

struct Flags {  // the ones the engine reads, typed
  static bool check_nan_inf();
  static bool exact_fluid();  // FLAGS_fluid_exact == "1.8.5"
  static double stall_report_s();
  static bool measure_threads();
  static int64_t memory_limit_mb();  // 0: none
  static int64_t plan_cache_size();
};

}  // namespace anabranch
