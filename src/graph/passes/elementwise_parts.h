// The nodes that fuse_elementwise can fuse, and the limits of a group.
#pragma once
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "graph/edit.h"
#include "graph/pass.h"
#include "opdef/infer_context.h"

namespace anabranch {

struct ElementwisePart {  // a node that can be part of a group
  struct Arg {            // a use of a variable in a slot
    std::string_view slot;
    int var;
  };
  std::vector<Arg> ins, outs;
  Shape shape;
  DType dtype = DType::kFloat32;  // of all its tensors
};

inline constexpr std::string_view kElementwiseOuts[] = {"Out", "X@GRAD", "Y@GRAD"};

class ElementwiseParts {
 public:
  ElementwiseParts(const Graph& graph, const GraphEdit& edit, const PassContext& context)
      : graph_(graph), edit_(edit), context_(context), there_(graph.nodes.size(), -1) {}

  bool fits(int node, ElementwisePart* part = nullptr) const;
  // The shape function on declared shapes; the number of LoD levels tells which input an output follows.
  InferContext inferred(const GraphNode& node) const;
  // The replica is on a device.
  bool on_device(const GraphNode& node) const {
    return !context_.places.empty() && !context_.places[static_cast<size_t>(node.replica)].on_host();
  }
  bool device_runs(const GraphNode& node) const;

 private:
  bool is_steady(int var, DType dtype) const;
  bool is_result(int var, DType dtype) const;
  bool is_step(int node) const;
  bool shapes_fit(const GraphNode& node, const ElementwisePart& part) const;

  const Graph& graph_;
  const GraphEdit& edit_;
  const PassContext& context_;
  mutable std::vector<signed char> there_;  // by node: whether devices support it as a step; -1: not queried yet
};

// Counts the resources of a group as it grows.
class ElementwiseRoom {
 public:
  explicit ElementwiseRoom(bool on_device) : on_device_(on_device) {}
  // False, with nothing changed, if this part would exceed the limits.
  bool take(const ElementwisePart& part);

 private:
  struct Value {
    int made, last;  // steps: the one that computes it, and its last reader
  };
  bool keeps_too_much(const std::vector<int>& reads, int step) const;

  bool on_device_;
  int steps_ = 0;
  std::set<int> inputs_;
  std::map<int, Value> values_;  // by variable
  std::vector<int> kept_;        // by step: results of it and earlier steps that later ones read
};

}  // namespace anabranch
