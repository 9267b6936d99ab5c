// How a program is turned into a graph: Fluid's BuildStrategy. Every field does its job here or says why nothing is
// left to do.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace anabranch {

enum class ReduceMode { kAllReduce = 0, kReduce = 1 };
enum class GradientScale { kCoeffNumDevice = 0, kOne = 1, kCustomized = 2 };

struct BuildStrategy {
  ReduceMode reduce_strategy = ReduceMode::kAllReduce;
  GradientScale gradient_scale_strategy = GradientScale::kCoeffNumDevice;
  std::string debug_graphviz_path;                // graphs after every pass are written as <path>_<pass>.dot
  bool enable_sequential_execution = false;       // nodes keep program order
  bool enable_backward_optimizer_op_deps = true;  // updates wait for the whole backward part
  bool remove_unnecessary_lock = true;            // nothing to do: ops take no locks
  bool cache_runtime_context = false;             // nothing to do: plans always keep theirs
  bool fuse_relu_depthwise_conv = false;
  std::optional<bool> fuse_elewise_add_act_ops;  // these: empty means that the engine decides
  std::optional<bool> fuse_bn_act_ops;
  std::optional<bool> fuse_all_optimizer_ops;
  std::optional<bool> fuse_all_reduce_ops;
  std::optional<bool> fuse_broadcast_ops;  // nothing to do on CPU: replicas share their parameters
  bool use_bfloat16 = false;               // products of fully connected layers take operands rounded to bfloat16
  bool enable_auto_fusion = false;
  bool sync_batch_norm = false;
  std::optional<bool> memory_optimize;
  bool enable_inplace = true;
  bool is_distribution = false;
  bool async_mode = false;
  int num_trainers = 1;
  int trainer_id = 0;
  std::vector<std::string> trainers_endpoints;
  int nccl_comm_num = 1;                          // GPU only
  bool use_hierarchical_allreduce = false;        // GPU only
  int hierarchical_allreduce_inter_nranks = 0;    // GPU only
  std::set<std::string> mkldnn_enabled_op_types;  // nothing to do: the kernel library serves every op it can
  std::set<std::string> disabled_passes;          // by name, beside the switches above
};

}  // namespace anabranch
