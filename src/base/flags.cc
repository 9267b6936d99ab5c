#include "base/flags.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "base/error.h"
#include "base/fork.h"

namespace anabranch {
namespace {

std::vector<FlagInfo> make_table() {
  using S = std::string;
  const auto flag = [](const char* name, FlagValue value, const char* doc) {
    return FlagInfo{S("FLAGS_") + name, value, value, doc};
  };
  const auto in_plans = [](FlagInfo row) {
    row.in_plans = true;
    return row;
  };
  const char* memory = "accepted for Fluid's scripts; memory is taken as needed here and never reserved up front";
  const char* gpu = "accepted, without effect on devices: memory is taken as needed, and what is free is kept";
  return {
      flag("check_nan_inf", false, "stop at the first op whose output holds NaN or infinity, naming it"),
      in_plans(
          flag("fluid_exact", S(""), "\"1.8.5\": behave as Paddle 1.8.5 where another behaviour is the default here")),
      flag("cpu_num_default", S(""),
           "replicas where CPU_NUM is not set: \"cores\": one for each core that the process may use; \"\": one"),
      flag("stall_report_s", 30.0, "seconds after which a wait inside the process is reported, again and again"),
      flag("measure_threads", true,
           "a plan uses its threads when its first runs were faster with them; false: whenever it was given any"),
      flag("spin_us", int64_t{100},
           "microseconds for which a thread of the pool that has nothing to do looks for work before it sleeps: what "
           "begins within them has its threads at once, later it waits some 30 microseconds for them to wake"),
      in_plans(flag("fuse_attention", true, "products with a softmax between them become one operation")),
      in_plans(flag("fuse_layer_norm", true, "a sum and the layer_norm after it become one operation")),
      in_plans(flag("fuse_recurrent", true, "steps of an LSTM, a GRU or a simple cell become one operation")),
      in_plans(flag("fuse_elementwise", true, "elementwise operations that read each other's results become one")),
      in_plans(flag("disable_passes", S(""),
                    "graph passes to leave out, by name, separated by commas; \"all\" for all of them")),
      flag("memory_limit_mb", int64_t{0},
           "tensors and tables of this process may take so many megabytes, more is an error; 0: no limit"),
      flag("max_loop_turns", int64_t{0},
           "a loop of a program may have so many turns in a step, more is an error; 0: no limit"),
      flag("max_loop_turns_untrusted", int64_t{1000000},
           "the same for each loop of a model that load_inference_model was not told to trust"),
      flag("plan_cache_size", int64_t{64}, "plans kept per compiled program"),
      flag("cpu_deterministic", false, "sums are always taken in a fixed order here; both values give the same bits"),
      flag("benchmark", false,
           "wait for each op that runs on a device, so that an error of the device names its op; slow, and there is "
           "nothing to wait for on the CPU"),
      flag("eager_delete_tensor_gb", 0.0, "temporaries keep their memory for the next step whatever the value"),
      flag("memory_fraction_of_eager_deletion", 1.0, memory),
      flag("fast_eager_deletion_mode", true, memory),
      flag("eager_delete_scope", true, memory),
      flag("allocator_strategy", S("auto_growth"), memory),
      flag("fraction_of_cpu_memory_to_use", 1.0, memory),
      flag("fraction_of_gpu_memory_to_use", 0.92,
           "programs may take that part of a device's memory, more is an error; 0: all of it"),
      flag("fraction_of_cuda_pinned_memory_to_use", 0.5, gpu),
      flag("initial_cpu_memory_in_mb", int64_t{500}, memory),
      flag("gpu_memory_limit_mb", int64_t{0},
           "programs may take so many megabytes of a device's memory, more is an error; 0: no limit but "
           "FLAGS_fraction_of_gpu_memory_to_use"),
      flag("initial_gpu_memory_in_mb", int64_t{0}, gpu),
      flag("reallocate_gpu_memory_in_mb", int64_t{0}, gpu),
      flag("use_pinned_memory", true, memory),
      flag("inner_op_parallelism", int64_t{0}, "loops inside ops are split over the executor's own threads"),
      flag("paddle_num_threads", int64_t{1}, "math libraries are called single-threaded inside the executor's threads"),
      flag("selected_gpus", S(""),
           "devices that cuda_places() gives, \"0,2\"; empty: all that CUDA_VISIBLE_DEVICES leaves"),
      flag("device_plugin", S("cuda"),
           "the library that CUDAPlace stands for: anabranch_<name>.so, loaded when devices are first asked for"),
      flag("device_deadline", int64_t{600000}, "milliseconds for which a thread waits for a device"),
      in_plans(flag("device_graphs", int64_t{2},
                    "so many operators and more in a row, which a plan puts into a device's queue in every run, are "
                    "captured as a graph and launched at once; 0: none are")),
      in_plans(flag("device_compile", true,
                    "chains of elementwise operators on GPUs are compiled by the driver when a plan first runs; false: "
                    "their steps are read from a table")),
      flag("cudnn_deterministic", false, "convolutions on GPUs take algorithms that give the same bits in every run"),
      flag("conv_workspace_size_limit", int64_t{512}, "megabytes that a convolution on GPUs may work in"),
      flag(
          "cudnn_exhaustive_search", false,
          "convolutions on GPUs take the fastest of the library's algorithms, which it times when a shape first comes"),
      flag("cudnn_batchnorm_spatial_persistent", false,
           "batch_norm on GPUs may take algorithms that are faster and overflow earlier"),
      in_plans(flag("enable_cublas_tensor_op_math", false,
                    "products of float32 on GPUs are rounded to 10 bits (TF32) and faster")),
      flag("simdevice_devices", int64_t{2}, "of the simulated device: how many there are, 1 to 8"),
      flag("simdevice_bytes", int64_t{1} << 34, "of the simulated device: memory of each"),
      flag("simdevice_seed", int64_t{0}, "of the simulated device: seed of the order in which queues run"),
      flag("simdevice_order", S("random"),
           "of the simulated device: which queue runs next: random, earliest, latest or starved"),
      flag(
          "simdevice_lanes", int64_t{1},
          "of the simulated device: 1: a row of a kernel has many lanes, as on a GPU, in an order of the seed; 0: one"),
      flag("simdevice_compiles", int64_t{1},
           "of the simulated device: 0: it makes no kernels for chains, as a driver that refuses to compile"),
      flag("simdevice_patience_ms", int64_t{10000},
           "of the simulated device: how long one thread waits for work that another one has to put into a queue"),
      flag("simdevice_explain_touches", int64_t{1},
           "of the simulated device: 1 prints which memory the CPU touched before the process ends by it"),
      flag("enable_parallel_graph", false, "accepted, without effect: one plan launches the work of all devices"),
      in_plans(flag("sync_nccl_allreduce", false,
                    "the thread that launches waits for each sum over devices; without it events keep their order, so "
                    "the default is another one than the original's")),
      flag("fuse_parameter_memory_size", -1.0,
           "accepted, without effect: all-reduces are fused by number, see FLAGS_fuse_parameter_groups_size"),
      in_plans(flag("fuse_parameter_groups_size", int64_t{3}, "gradients in one fused all-reduce; -1: all in one")),
      flag("use_mkldnn", false, "the kernel library serves every op it can whatever the value"),
      flag("use_ngraph", false, "accepted for Fluid's scripts; there is no such backend"),
      flag("reader_queue_speed_test_mode", false,
           "accepted, without effect: reader queues always give each batch once"),
      flag("rpc_deadline", int64_t{180000}, "milliseconds after which a request to a parameter server is given up"),
      flag("collective_deadline", int64_t{60000},
           "milliseconds for which a process waits in a sum or copy over several processes for another one"),
      flag("collective_shared_memory", true,
           "processes of one machine add up in memory that they share; else, and between machines, by messages"),
      flag("ps_state_dir", S(""), "folder in which parameter servers keep what survives them; empty: nothing is kept"),
      flag("ps_durability", int64_t{1},
           "what survives a server: 0 the last snapshot, 1 all that was acknowledged, 2 that and the loss of power"),
      flag("ps_snapshot_every", int64_t{1000}, "updates of a server between two snapshots of it"),
      flag("ps_file_lease", int64_t{60000},
           "milliseconds after which the files of a trainer that says nothing go back to their queue; at least 100"),
      flag("rpc_certificates", S(""), "folder with ca.pem, cert.pem and key.pem: servers and trainers show them"),
      flag("rpc_insecure", false,
           "servers may listen beyond this machine without certificates: the network is trusted"),
      flag("rpc_message_limit_mb", int64_t{16384},
           "messages to and from parameter servers that are larger are refused"),
      flag("rpc_retry_times", int64_t{3}, "accepted, without effect: a request is repeated until FLAGS_rpc_deadline"),
      flag("print_sub_graph_dir", S(""), "accepted for Fluid's scripts; see BuildStrategy.debug_graphviz_path"),
      flag("pe_profile_fname", S(""), "accepted for Fluid's scripts; see fluid.profiler"),
  };
}

FlagValue parse(const FlagInfo& flag, const std::string& text) {
  const auto bad = [&](const char* what) {
    AB_THROW(InvalidArgument, "{} must be {}, got \"{}\"", flag.name, what, text);
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
    errno = 0;
    const long long v = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end || errno == ERANGE) bad("a whole number of 64 bits");
    return static_cast<int64_t>(v);
  }
  if (std::holds_alternative<double>(flag.initial)) {
    const double v = std::strtod(text.c_str(), &end);
    if (text.empty() || *end) bad("a number");
    return v;
  }
  return text;
}

// What a run reads, without a lock.
struct Typed {
  std::atomic<bool> benchmark, check_nan_inf, exact_fluid, measure_threads;
  std::atomic<double> stall_report_s;
  std::atomic<int64_t> plan_cache_size, memory_limit_mb, max_loop_turns, spin_us, device_deadline;
  std::atomic<uint64_t> plan_epoch{0};
};

struct Table {
  // Of the values; names and types never change. Held over a fork, so no lock that knows its owner: the child, which is
  // another thread, opens it.
  std::mutex mutex;
  std::vector<FlagInfo> flags = make_table();
  std::vector<std::string> warnings;
  Typed typed;

  Table() {
    read_environment();
    publish();
  }

  FlagInfo& find(const std::string& name) {
    for (FlagInfo& f : flags) {
      if (f.name == name) return f;
    }
    AB_THROW(InvalidArgument, "there is no flag {}", name);
  }

  // A text that is no value must not end the process while it starts: the default stays, and a warning says so.
  void read_environment() {
    for (char** e = environ; e && *e; ++e) {
      const std::string entry = *e;
      if (entry.rfind("FLAGS_", 0) != 0) continue;
      const size_t end = entry.find('=');
      try {
        FlagInfo& flag = find(entry.substr(0, end));
        flag.value = parse(flag, end == std::string::npos ? "" : entry.substr(end + 1));
      } catch (const Error& error) {
        warnings.push_back(error.message() + "; it is ignored");
      }
    }
    std::sort(warnings.begin(), warnings.end());
  }

  void publish() {
    typed.benchmark = std::get<bool>(find("FLAGS_benchmark").value);
    typed.check_nan_inf = std::get<bool>(find("FLAGS_check_nan_inf").value);
    typed.exact_fluid = std::get<std::string>(find("FLAGS_fluid_exact").value) == "1.8.5";
    typed.measure_threads = std::get<bool>(find("FLAGS_measure_threads").value);
    typed.stall_report_s = std::get<double>(find("FLAGS_stall_report_s").value);
    typed.max_loop_turns = std::get<int64_t>(find("FLAGS_max_loop_turns").value);
    typed.memory_limit_mb = std::get<int64_t>(find("FLAGS_memory_limit_mb").value);
    typed.device_deadline = std::get<int64_t>(find("FLAGS_device_deadline").value);
    typed.spin_us = std::get<int64_t>(find("FLAGS_spin_us").value);
    typed.plan_cache_size = std::get<int64_t>(find("FLAGS_plan_cache_size").value);
  }

  void set(FlagInfo& flag, FlagValue value) {
    const std::lock_guard lock(mutex);
    if (flag.value == value) return;
    flag.value = std::move(value);
    publish();
    if (flag.in_plans) ++typed.plan_epoch;
  }
};

Table& table() {
  static auto& made = *new Table();  // never destroyed: threads may run until the process ends
  return made;
}

[[maybe_unused]] const bool hooked = [] {
  const auto unlock = [] { table().mutex.unlock(); };
  at_fork(ForkStage::kFlags, {[] { table().mutex.lock(); }, unlock, unlock});
  return true;
}();

}  // namespace

std::vector<FlagInfo> all_flags() {
  const std::lock_guard lock(table().mutex);
  return table().flags;
}

FlagValue get_flag(const std::string& name) {
  const FlagInfo& flag = table().find(name);
  const std::lock_guard lock(table().mutex);
  return flag.value;
}

void set_flag_text(const std::string& name, const std::string& text) {
  FlagInfo& flag = table().find(name);
  table().set(flag, parse(flag, text));
}

void set_flag(const std::string& name, const FlagValue& value) {
  FlagInfo& flag = table().find(name);
  FlagValue v = value;
  if (std::holds_alternative<int64_t>(v) && std::holds_alternative<double>(flag.initial)) {
    v = static_cast<double>(std::get<int64_t>(v));
  }
  AB_CHECK(v.index() == flag.initial.index(), InvalidArgument, "{} takes another type of value", name);
  table().set(flag, std::move(v));
}

const std::vector<std::string>& environment_flag_warnings() { return table().warnings; }

bool Flags::benchmark() { return table().typed.benchmark.load(std::memory_order_relaxed); }
bool Flags::check_nan_inf() { return table().typed.check_nan_inf.load(std::memory_order_relaxed); }
bool Flags::exact_fluid() { return table().typed.exact_fluid.load(std::memory_order_relaxed); }
double Flags::stall_report_s() { return table().typed.stall_report_s.load(std::memory_order_relaxed); }
bool Flags::measure_threads() { return table().typed.measure_threads.load(std::memory_order_relaxed); }
int64_t Flags::plan_cache_size() { return table().typed.plan_cache_size.load(std::memory_order_relaxed); }
int64_t Flags::max_loop_turns() { return table().typed.max_loop_turns.load(std::memory_order_relaxed); }
int64_t Flags::memory_limit_mb() { return table().typed.memory_limit_mb.load(std::memory_order_relaxed); }
int64_t Flags::spin_us() { return table().typed.spin_us.load(std::memory_order_relaxed); }
int64_t Flags::device_deadline() { return table().typed.device_deadline.load(std::memory_order_relaxed); }
uint64_t Flags::plan_epoch() { return table().typed.plan_epoch.load(std::memory_order_acquire); }

}  // namespace anabranch
