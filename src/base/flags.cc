#include "base/flags.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <utility>

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
  const char* memory = "No effect, because memory is allocated when it is needed. Fluid's scripts may set it.";
  const char* gpu = "No effect, because device memory is allocated when it is needed and freed blocks are reused.";
  return {
      flag("check_nan_inf", false, "Stop at the first operator whose output holds NaN or infinity, and name it."),
      in_plans(flag("fluid_exact", S(""),
                    "If \"1.8.5\", behave exactly as Fluid 1.8.5 where Anabranch differs by default. If empty, use "
                    "Anabranch's defaults.")),
      flag("cpu_num_default", S(""),
           "Number of replicas if CPU_NUM is not set: \"cores\" means one for each usable core, and empty means one."),
      flag("stall_report_s", 30.0,
           "Seconds after which a step or a reader that has not finished prints a stall report, and seconds between "
           "two reports; 0 disables them."),
      flag("measure_threads", true,
           "Use several threads for a plan only if its first runs were faster with them. If false, always use them."),
      flag("flush_denormals", true,
           "Treat numbers below the normal range of their dtype (1.2e-38 for float32) as zero in operators, because "
           "many processors compute with them slowly. A run restores the mode of the calling thread when it ends."),
      flag("spin_us", int64_t{100},
           "Microseconds for which an idle thread of the pool polls for work before it sleeps. Waking a sleeping "
           "thread takes about 30 microseconds."),
      in_plans(flag("fuse_attention", true, "Fuse two products with a softmax between them into one operator.")),
      in_plans(flag("fuse_layer_norm", true, "Fuse layer_norm with the sum before it.")),
      in_plans(flag("fuse_recurrent", true, "Fuse the steps of an LSTM, a GRU or a simple cell into one operator.")),
      in_plans(flag("fuse_elementwise", true, "Fuse chains of elementwise operators.")),
      in_plans(flag("disable_passes", S(""),
                    "Names of graph passes to disable, separated by commas; \"all\" disables every pass.")),
      flag("memory_limit_mb", int64_t{0},
           "Limit of the memory for tensors and tables of this process in megabytes; 0 means no limit. An allocation "
           "beyond the limit raises ResourceExhausted."),
      flag("max_loop_iterations", int64_t{0},
           "Maximum number of iterations of a loop of the program in one step; 0 means no limit. A loop that exceeds "
           "it raises an error."),
      flag("max_loop_iterations_untrusted", int64_t{1000000},
           "Maximum number of iterations of a loop in a model that was loaded without trusted=True. A loop that "
           "exceeds it raises an error."),
      flag("plan_cache_size", int64_t{64}, "Number of plans to keep for each compiled program."),
      flag("cpu_deterministic", false, "No effect: sums always have a fixed order, so both values give the same bits."),
      flag("benchmark", false,
           "Wait for each operator that runs on a device, so that a device error names its operator. This is slow and "
           "has no effect on the CPU."),
      flag("eager_delete_tensor_gb", 0.0, "No effect: temporaries keep their memory for the next step."),
      flag("memory_fraction_of_eager_deletion", 1.0, memory),
      flag("fast_eager_deletion_mode", true, memory),
      flag("eager_delete_scope", true, memory),
      flag("allocator_strategy", S("auto_growth"), memory),
      flag("fraction_of_cpu_memory_to_use", 1.0, memory),
      flag("fraction_of_gpu_memory_to_use", 0.92,
           "Share of a device's memory that programs may use; 0 means all of it. An allocation beyond the share raises "
           "ResourceExhausted."),
      flag("fraction_of_cuda_pinned_memory_to_use", 0.5, gpu),
      flag("initial_cpu_memory_in_mb", int64_t{500}, memory),
      flag("gpu_memory_limit_mb", int64_t{0},
           "Limit of the memory that programs may use on a device in megabytes. With 0, only "
           "FLAGS_fraction_of_gpu_memory_to_use limits it."),
      flag("initial_gpu_memory_in_mb", int64_t{0}, gpu),
      flag("reallocate_gpu_memory_in_mb", int64_t{0}, gpu),
      flag("use_pinned_memory", true, memory),
      flag("inner_op_parallelism", int64_t{0},
           "No effect: the threads of the executor also share the loops inside operators."),
      in_plans(flag("paddle_num_threads", int64_t{1},
                    "Number of threads of an executor for each replica, if it is set and the program sets no "
                    "num_threads. If it is not set, OMP_NUM_THREADS is used, and without it, all cores that the "
                    "process may use.")),
      flag("selected_gpus", S(""),
           "Devices that cuda_places() returns, such as \"0,2\". If empty, it returns all devices that "
           "CUDA_VISIBLE_DEVICES leaves."),
      flag("device_plugin", S("cuda"),
           "Name of the plug-in that CUDAPlace uses. The file anabranch_<name>.so is loaded at the first use of a "
           "device."),
      flag("device_deadline", int64_t{600000},
           "Milliseconds for which a thread waits for a device before it raises an error."),
      in_plans(flag("device_graphs", int64_t{2},
                    "Minimum number of consecutive operators of a device queue that are captured as a graph and "
                    "launched at once; 0 disables capturing.")),
      in_plans(flag("device_compile", true,
                    "Compile chains of elementwise operators for the GPU when a plan first runs. If false, a kernel "
                    "interprets them from a table.")),
      flag("cudnn_deterministic", false, "Use only convolution algorithms that give the same bits in every run."),
      flag("conv_workspace_size_limit", int64_t{512}, "Limit of the workspace of a convolution on GPUs in megabytes."),
      flag("cudnn_exhaustive_search", false,
           "Time all of cuDNN's convolution algorithms at the first use of a shape, and use the fastest."),
      flag("cudnn_batchnorm_spatial_persistent", false,
           "Allow batch_norm algorithms on GPUs that are faster, but overflow earlier."),
      in_plans(flag(
          "enable_cublas_tensor_op_math", false,
          "Allow TF32 for float32 products on GPUs, which is faster and rounds the operands to 10 bits of mantissa.")),
      flag("simdevice_devices", int64_t{2}, "Simulated device: number of devices, from 1 to 8."),
      flag("simdevice_bytes", int64_t{1} << 34, "Simulated device: memory of each device in bytes."),
      flag("simdevice_seed", int64_t{0}, "Simulated device: seed of the order in which queues run."),
      flag("simdevice_order", S("random"),
           "Simulated device: rule that selects the queue to run next: random, earliest, latest or starved."),
      flag("simdevice_lanes", int64_t{1},
           "Simulated device: 1 runs each row of a kernel with many lanes, as a GPU does, in an order that the seed "
           "determines; 0 runs it with one lane."),
      flag("simdevice_compiles", int64_t{1},
           "Simulated device: 0 compiles no kernels for chains of operators, as if the driver could not compile them."),
      flag("simdevice_patience_ms", int64_t{10000},
           "Simulated device: milliseconds for which a thread waits for work that another thread must put into a "
           "queue."),
      flag("simdevice_explain_touches", int64_t{1},
           "Simulated device: 1 prints which device memory the CPU touched before this ends the process."),
      flag("enable_parallel_graph", false, "No effect: one plan launches the work of all devices."),
      in_plans(flag("sync_nccl_allreduce", false,
                    "Make the launching thread wait for each AllReduce over devices. Events keep the order without it, "
                    "so the default differs from Fluid 1.8.5.")),
      flag("fuse_parameter_memory_size", -1.0,
           "No effect: FLAGS_fuse_parameter_groups_size limits the number of gradients in a fused all-reduce instead."),
      in_plans(flag("fuse_parameter_groups_size", int64_t{3},
                    "Number of gradients in one fused all-reduce; -1 fuses all of them.")),
      flag("use_mkldnn", false, "No effect: oneDNN computes every operator that it supports."),
      flag("use_ngraph", false, "No effect, because there is no such backend. Fluid's scripts may set it."),
      flag("reader_queue_speed_test_mode", false, "No effect: a reader queue returns each batch once."),
      flag("rpc_deadline", int64_t{180000},
           "Milliseconds after which an unanswered request to a parameter server fails."),
      flag("collective_deadline", int64_t{60000},
           "Milliseconds for which a process waits for the other processes in a collective operation."),
      flag("collective_shared_memory", true,
           "Use shared memory for collectives between processes of one machine. If false, and between machines, "
           "processes send messages."),
      flag("ps_state_dir", S(""),
           "Folder in which parameter servers store the state from which they resume. If empty, they store nothing."),
      flag("ps_durability", int64_t{1},
           "Durability of acknowledged updates: 0 = only what the last snapshot holds, 1 = survives a process crash, "
           "2 = also survives a power failure."),
      flag("ps_snapshot_every", int64_t{1000}, "Number of updates of a server between two snapshots."),
      flag("ps_file_lease", int64_t{60000},
           "Milliseconds until the files of a silent worker return to their queue; the minimum is 100."),
      flag("rpc_certificates", S(""),
           "Folder with ca.pem, cert.pem and key.pem, which servers and workers use for mutual TLS."),
      flag("rpc_insecure", false,
           "Allow servers to listen beyond this machine without certificates. Set it only on a trusted network."),
      flag("rpc_message_limit_mb", int64_t{2048},
           "Limit of the size of messages to and from parameter servers in megabytes. Larger messages are rejected."),
      flag("rpc_retry_times", int64_t{3}, "No effect: a request is repeated until FLAGS_rpc_deadline."),
      flag("print_sub_graph_dir", S(""),
           "No effect. Fluid's scripts may set it; BuildStrategy.debug_graphviz_path writes graphs."),
      flag("pe_profile_fname", S(""), "No effect. Fluid's scripts may set it; fluid.profiler writes profiles."),
  };
}

// Flags of text that have a single value apart from empty.
constexpr std::pair<const char*, const char*> kOnlyValues[] = {{"FLAGS_fluid_exact", "1.8.5"}};

// InvalidArgument for a text that would have no effect.
const FlagValue& checked(const FlagInfo& flag, const FlagValue& value) {
  for (const auto& [name, only] : kOnlyValues) {
    if (flag.name != name) continue;
    const auto& text = std::get<std::string>(value);
    AB_CHECK(text.empty() || text == only, InvalidArgument, "{} must be \"{}\" or empty, got \"{}\"", name, only, text);
  }
  return value;
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
    if (text.empty() || *end || errno == ERANGE) bad("a 64-bit integer");
    return static_cast<int64_t>(v);
  }
  if (std::holds_alternative<double>(flag.initial)) {
    const double v = std::strtod(text.c_str(), &end);
    if (text.empty() || *end) bad("a number");
    return v;
  }
  return text;
}

// The flags that a run reads without a lock.
struct Typed {
  std::atomic<bool> benchmark, check_nan_inf, exact_fluid, flush_denormals, measure_threads;
  std::atomic<double> stall_report_s;
  std::atomic<int64_t> plan_cache_size, memory_limit_mb, max_loop_iterations, spin_us, device_deadline;
  std::atomic<uint64_t> plan_epoch{0};
};

struct Table {
  // Guards the values; names and types never change. It is held across a fork and unlocked in the child by another
  // thread, so it must not be a mutex that checks its owner.
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

  // A malformed value must not end the process at start-up: the default stays, with a warning.
  void read_environment() {
    for (char** e = environ; e && *e; ++e) {
      const std::string entry = *e;
      if (entry.rfind("FLAGS_", 0) != 0) continue;
      const size_t end = entry.find('=');
      try {
        FlagInfo& flag = find(entry.substr(0, end));
        flag.value = checked(flag, parse(flag, end == std::string::npos ? "" : entry.substr(end + 1)));
      } catch (const Error& error) {
        warnings.push_back(error.message() + "; it is ignored");
      }
    }
    std::sort(warnings.begin(), warnings.end());
  }

  void publish() {
    typed.benchmark = std::get<bool>(find("FLAGS_benchmark").value);
    typed.check_nan_inf = std::get<bool>(find("FLAGS_check_nan_inf").value);
    typed.flush_denormals = std::get<bool>(find("FLAGS_flush_denormals").value);
    typed.exact_fluid = std::get<std::string>(find("FLAGS_fluid_exact").value) == "1.8.5";
    typed.measure_threads = std::get<bool>(find("FLAGS_measure_threads").value);
    typed.stall_report_s = std::get<double>(find("FLAGS_stall_report_s").value);
    typed.max_loop_iterations = std::get<int64_t>(find("FLAGS_max_loop_iterations").value);
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
  table().set(flag, checked(flag, parse(flag, text)));
}

void set_flag(const std::string& name, const FlagValue& value) {
  FlagInfo& flag = table().find(name);
  FlagValue v = value;
  if (std::holds_alternative<int64_t>(v) && std::holds_alternative<double>(flag.initial)) {
    v = static_cast<double>(std::get<int64_t>(v));
  }
  AB_CHECK(v.index() == flag.initial.index(), InvalidArgument, "{} does not accept a value of this type", name);
  table().set(flag, checked(flag, v));
}

const std::vector<std::string>& environment_flag_warnings() { return table().warnings; }

bool Flags::flush_denormals() { return table().typed.flush_denormals.load(std::memory_order_relaxed); }
bool Flags::benchmark() { return table().typed.benchmark.load(std::memory_order_relaxed); }
bool Flags::check_nan_inf() { return table().typed.check_nan_inf.load(std::memory_order_relaxed); }
bool Flags::exact_fluid() { return table().typed.exact_fluid.load(std::memory_order_relaxed); }
double Flags::stall_report_s() { return table().typed.stall_report_s.load(std::memory_order_relaxed); }
bool Flags::measure_threads() { return table().typed.measure_threads.load(std::memory_order_relaxed); }
int64_t Flags::plan_cache_size() { return table().typed.plan_cache_size.load(std::memory_order_relaxed); }
int64_t Flags::max_loop_iterations() { return table().typed.max_loop_iterations.load(std::memory_order_relaxed); }
int64_t Flags::memory_limit_mb() { return table().typed.memory_limit_mb.load(std::memory_order_relaxed); }
int64_t Flags::spin_us() { return table().typed.spin_us.load(std::memory_order_relaxed); }
int64_t Flags::device_deadline() { return table().typed.device_deadline.load(std::memory_order_relaxed); }
uint64_t Flags::plan_epoch() { return table().typed.plan_epoch.load(std::memory_order_acquire); }

}  // namespace anabranch
