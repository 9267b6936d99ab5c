// How a program is turned into a graph: the fields of Fluid's BuildStrategy that passes and the engine read. The
// others, which have no effect, exist only in fluid/strategies.py.
#pragma once
#include <optional>
#include <set>
#include <string>

namespace anabranch {

enum class ReduceMode { kAllReduce = 0, kReduce = 1 };
enum class GradientScale { kCoeffNumDevice = 0, kOne = 1, kCustomized = 2 };

struct BuildStrategy {
  ReduceMode reduce_strategy = ReduceMode::kAllReduce;
  GradientScale gradient_scale_strategy = GradientScale::kCoeffNumDevice;
  std::string debug_graphviz_path;                // graphs after every pass are written to <path>_<pass>.dot
  bool enable_sequential_execution = false;       // nodes keep program order
  bool enable_backward_optimizer_op_deps = true;  // updates wait for the whole backward part
  std::optional<bool> fuse_elewise_add_act_ops;   // for these, empty means that the engine decides
  std::optional<bool> fuse_bn_act_ops;
  std::optional<bool> fuse_all_optimizer_ops;
  std::optional<bool> fuse_all_reduce_ops;
  bool use_bfloat16 = false;     // products and 2-D convolutions take operands rounded to bfloat16
  bool sync_batch_norm = false;  // on devices, statistics over all replicas
  bool enable_inplace = true;
  bool async_mode = false;  // replicas do not add up their gradients; see graph/trainers.h
  int num_trainers = 1;     // processes of ring 0 that add up their gradients
  int trainer_id = 0;
  int nccl_comm_num = 1;                  // communicators of devices, used in rotation
  std::set<std::string> disabled_passes;  // by name, in addition to the switches above
};

}  // namespace anabranch
