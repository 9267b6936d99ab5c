// What fuse_elementwise makes nodes of: which ops can be part of one, and how many fit into one.
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
  DType dtype = DType::kFloat32;  // of all of its tensors
};

inline constexpr std::string_view kElementwiseOuts[] = {"Out", "X@GRAD", "Y@GRAD"};

class ElementwiseParts {
 public:
  ElementwiseParts(const Graph& graph, const GraphEdit& edit, const PassContext& context)
      : graph_(graph), edit_(edit), context_(context), there_(graph.nodes.size(), -1) {}

  bool fits(int node, ElementwisePart* part = nullptr) const;
  // The shape function on declared shapes, where the number of levels of sequences says which input it is.
  InferContext inferred(const GraphNode& node) const;
  // The replica is one of a device.
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
  mutable std::vector<signed char> there_;  // by node: whether devices have it as a step; -1: not asked yet
};

// Counts what a node is made of as it grows.
class ElementwiseRoom {
 public:
  explicit ElementwiseRoom(bool on_device) : on_device_(on_device) {}
  // False, with nothing changed, where this part would be too much.
  bool take(const ElementwisePart& part);

 private:
  struct Value {
    int made, last;  // steps: by which it is made, and which reads it last
  };
  bool keeps_too_much(const std::vector<int>& reads, int step) const;

  bool on_device_;
  int steps_ = 0;
  std::set<int> inputs_;
  std::map<int, Value> values_;  // by variable
  std::vector<int> kept_;        // by step: results of it and steps before that later ones read
};

}  // namespace anabranch
