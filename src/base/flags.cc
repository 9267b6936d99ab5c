#include "base/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace anabranch {
namespace {

std::vector<FlagInfo> make_table() {
  using S = std::string;
  const auto flag = [](const char* name, FlagValue value, const char* doc) {
    return FlagInfo{S("FLAGS_") + name, value, value, doc};
  };
  const char* memory = "accepted for Fluid's scripts; memory is taken as needed here and never reserved up front";
  const char* gpu = "accepted for Fluid's scripts; concerns GPUs only";
  return {
      flag("check_nan_inf", false, "stop at the first op whose output holds NaN or infinity, naming it"),
      flag("fluid_exact", S(""), "\"1.8.5\": behave as Paddle 1.8.5 where another behaviour is the default here"),
      flag("stall_report_s", 30.0, "seconds after which a wait inside the process is reported, again and again"),
      flag("measure_threads", true,
           "a plan uses its threads when its first runs were faster with them; false: whenever it was given any"),
      flag("fuse_elementwise", true, "elementwise operations that read each other's results become one"),
      flag("disable_passes", S(""), "graph passes to leave out, by name, separated by commas; \"all\" for all of them"),
      flag("memory_limit_mb", int64_t{0},
           "tensors and tables of this process may take so many megabytes, more is an error; 0: no limit"),
      flag("plan_cache_size", int64_t{64}, "plans kept per compiled program"),
      flag("cpu_deterministic", false, "sums are always taken in a fixed order here; both values give the same bits"),
      flag("benchmark", false, "wait for every op; there is nothing to wait for on CPU"),
      flag("eager_delete_tensor_gb", 0.0, "temporaries keep their memory for the next step whatever the value"),
      flag("memory_fraction_of_eager_deletion", 1.0, memory),
      flag("fast_eager_deletion_mode", true, memory),
      flag("eager_delete_scope", true, memory),
      flag("allocator_strategy", S("auto_growth"), memory),
      flag("fraction_of_cpu_memory_to_use", 1.0, memory),
      flag("fraction_of_gpu_memory_to_use", 0.92, gpu),
      flag("fraction_of_cuda_pinned_memory_to_use", 0.5, gpu),
      flag("initial_cpu_memory_in_mb", int64_t{500}, memory),
      flag("gpu_memory_limit_mb", int64_t{0}, gpu),
      flag("use_pinned_memory", true, memory),
      flag("inner_op_parallelism", int64_t{0}, "loops inside ops are split over the executor's own threads"),
      flag("paddle_num_threads", int64_t{1}, "math libraries are called single-threaded inside the executor's threads"),
      flag("selected_gpus", S(""), gpu),
      flag("enable_parallel_graph", false, gpu),
      flag("sync_nccl_allreduce", true, gpu),
      flag("fuse_parameter_memory_size", -1.0, "megabytes of gradients in one fused all-reduce; -1: not used"),
      flag("fuse_parameter_groups_size", int64_t{3}, "gradients in one fused all-reduce; -1: all in one"),
      flag("use_mkldnn", false, "the kernel library serves every op it can whatever the value"),
      flag("use_ngraph", false, "accepted for Fluid's scripts; there is no such backend"),
      flag("reader_queue_speed_test_mode", false, "reader queues return copies for ever"),
      flag("rpc_deadline", int64_t{180000}, "milliseconds for one remote call"),
      flag("rpc_retry_times", int64_t{3}, "retries of a remote call"),
      flag("print_sub_graph_dir", S(""), "accepted for Fluid's scripts; see BuildStrategy.debug_graphviz_path"),
      flag("pe_profile_fname", S(""), "accepted for Fluid's scripts; see fluid.profiler"),
  };
}

FlagValue parse(const FlagInfo& flag, const std::string& text) {
  const auto bad = [&](const char* what) {
    AB_THROW(InvalidArgument, "{} is \"{}\", expected {}", flag.name, text, what);
  };
  char* end = nullptr;
  if (std::holds_alternative<bool>(flag.initial)) {
    std::string t = text;
    std::transform(t.begin(), t.end(), t.begin(), ::tolower);
    if (t == "1" || t == "true" || t == "yes") return true;
    if (t == "0" || t == "false" || t == "no") return false;
    bad("a truth value (true, false, 1, 0)");
  }
  if (std::holds_alternative<int64_t>(flag.initial)) {
    const long long v = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end) bad("a whole number");
    return static_cast<int64_t>(v);
  }
  if (std::holds_alternative<double>(flag.initial)) {
    const double v = std::strtod(text.c_str(), &end);
    if (text.empty() || *end) bad("a number");
    return v;
  }
  return text;
}

std::vector<FlagInfo>& table() {
  static std::vector<FlagInfo> flags = [] {
    auto all = make_table();
    for (FlagInfo& f : all) {
      // A bad text must not end the process while it starts: the default stays, set_flags reports bad values.
      if (const char* text = std::getenv(f.name.c_str())) {
        try {
          f.value = parse(f, text);
        } catch (const Error&) {
        }
      }
    }
    return all;
  }();
  return flags;
}

FlagInfo& find(const std::string& name) {
  for (FlagInfo& f : table()) {
    if (f.name == name) return f;
  }
  AB_THROW(InvalidArgument, "there is no flag {}", name);
}

}  // namespace

const std::vector<FlagInfo>& all_flags() { return table(); }
const FlagValue& get_flag(const std::string& name) { return find(name).value; }
void set_flag_text(const std::string& name, const std::string& text) { find(name).value = parse(find(name), text); }

void set_flag(const std::string& name, const FlagValue& value) {
  FlagInfo& f = find(name);
  FlagValue v = value;
  if (std::holds_alternative<int64_t>(v) && std::holds_alternative<double>(f.initial)) {
    v = static_cast<double>(std::get<int64_t>(v));
  }
  AB_CHECK(v.index() == f.initial.index(), InvalidArgument, "{} takes another type of value", name);
  f.value = v;
}

std::vector<std::string> unknown_environment_flags() {
  std::vector<std::string> names;
  for (char** e = environ; e && *e; ++e) {
    const std::string entry = *e;
    if (entry.rfind("FLAGS_", 0) != 0) continue;
    const std::string name = entry.substr(0, entry.find('='));
    const auto& all = table();
    if (std::none_of(all.begin(), all.end(), [&](const FlagInfo& f) { return f.name == name; })) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The table never changes its size, so a row found once stays where it is: a run reads flags without a look-up.
bool Flags::check_nan_inf() {
  static const FlagInfo& flag = find("FLAGS_check_nan_inf");
  return std::get<bool>(flag.value);
}
bool Flags::exact_fluid() {
  static const FlagInfo& flag = find("FLAGS_fluid_exact");
  return std::get<std::string>(flag.value) == "1.8.5";
}
double Flags::stall_report_s() {
  static const FlagInfo& flag = find("FLAGS_stall_report_s");
  return std::get<double>(flag.value);
}
bool Flags::measure_threads() {
  static const FlagInfo& flag = find("FLAGS_measure_threads");
  return std::get<bool>(flag.value);
}
int64_t Flags::memory_limit_mb() {
  static const FlagInfo& flag = find("FLAGS_memory_limit_mb");
  return std::get<int64_t>(flag.value);
}

int64_t Flags::plan_cache_size() {
  static const FlagInfo& flag = find("FLAGS_plan_cache_size");
  return std::get<int64_t>(flag.value);
}

}  // namespace anabranch
