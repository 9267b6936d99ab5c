// Elementwise ops that read each other's results become fused_elementwise: a value without other readers never leaves
// the cache, and shared inputs are read once; on devices they are one launch. Results that other nodes read, or that
// are fetched, are still written to memory.
#include <algorithm>
#include <map>

#include "graph/edit.h"
#include "graph/passes/elementwise_parts.h"
#include "graph/passes/passes.h"
#include "graph/passes/row_sources.h"
#include "opdef/fused_ops.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

using Part = ElementwisePart;
using Arg = ElementwisePart::Arg;

constexpr int kFar = 512;  // keeps the pass linear in the number of nodes

class ElementwiseFuser {
 public:
  ElementwiseFuser(Graph& graph, const PassContext& context)
      : graph_(graph), edit_(graph), rows_(graph), parts_(graph, edit_, context), group_of_(graph.nodes.size(), -1) {}

  int run() {
    int made = 0;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (edit_.gone(i) || group_of_[i] >= 0 || !parts_.fits(i)) continue;
      std::vector<int> parts = grow(i);
      if (parts_.on_device(graph_.nodes[i])) cut(&parts);
      for (int p : parts) group_of_[p] = i;
      if (parts.size() < 2) continue;
      made += replace(parts);
    }
    edit_.commit();
    return made;
  }

 private:
  // Nodes after `first` that read the group's results, as long as all of them can run at the position of the first.
  std::vector<int> grow(int first) const {
    std::vector<int> parts = {first}, waiting;
    Part p;
    parts_.fits(first, &p);
    const Shape shape = p.shape;
    const DType dtype = p.dtype;
    ElementwiseRoom room(parts_.on_device(graph_.nodes[first]));
    room.take(p);
    const auto add_readers = [&](const Part& part) {
      for (const Arg& out : part.outs) {
        for (int r : edit_.uses.readers(out.var)) {
          const bool near = r > first && r - first <= kFar;
          if (near && std::find(waiting.begin(), waiting.end(), r) == waiting.end()) waiting.push_back(r);
        }
      }
    };
    add_readers(p);
    for (size_t tried = 0; tried < waiting.size(); ++tried) {
      // the earliest first: the others may read it
      std::iter_swap(waiting.begin() + static_cast<std::ptrdiff_t>(tried),
                     std::min_element(waiting.begin() + static_cast<std::ptrdiff_t>(tried), waiting.end()));
      const int i = waiting[tried];
      const GraphNode &node = graph_.nodes[i], &head = graph_.nodes[first];
      if (i < parts.back() || edit_.gone(i) || group_of_[i] >= 0 || node.replica != head.replica) continue;
      if (node.role() != head.role() || !parts_.fits(i, &p) || !(p.shape == shape) || p.dtype != dtype) continue;
      parts.push_back(i);
      if (!edit_.may_gather(parts) || !room.take(p)) {
        parts.pop_back();
        continue;
      }
      add_readers(p);
    }
    return parts;
  }

  // Keeps the longest prefix of a group that writes no more results to memory than a launch has room for.
  void cut(std::vector<int>* parts) const {
    std::vector<std::pair<size_t, size_t>> in_memory;  // results: from this length on, up to this one
    for (size_t k = 0; k < parts->size(); ++k) {
      Part p;
      parts_.fits((*parts)[k], &p);
      for (const Arg& out : p.outs) in_memory.emplace_back(k + 1, enough_for(out.var, *parts));
    }
    const auto room_for = [&](size_t length) {
      return std::count_if(in_memory.begin(), in_memory.end(), [length](const auto& result) {
               return result.first <= length && length < result.second;
             }) <= fused::kMaxOutsOnDevices;
    };
    while (!room_for(parts->size())) parts->pop_back();
  }

  // The length of the prefix that contains all readers of a result.
  size_t enough_for(int var, const std::vector<int>& parts) const {
    size_t enough = 0;
    for (const int r : edit_.uses.readers(var)) {
      const auto at = std::lower_bound(parts.begin(), parts.end(), r);
      if (at == parts.end() || *at != r) return parts.size() + 1;
      enough = std::max(enough, static_cast<size_t>(at - parts.begin()) + 1);
    }
    return graph_.vars[var].fetched ? parts.size() + 1 : enough;
  }

  bool needed(int var, const std::vector<int>& parts) const {
    const auto& readers = edit_.uses.readers(var);
    return graph_.vars[var].fetched || std::any_of(readers.begin(), readers.end(), [&](int r) {
             return std::find(parts.begin(), parts.end(), r) == parts.end();
           });
  }

  // ---- the node

  struct Made {
    NodeBuilder node;
    std::map<int, int> operand = {};  // of variables
    std::vector<int> results = {};    // variables, by step
    std::vector<int32_t> plan = {}, lods = {}, outs = {};
    std::vector<std::string> types = {}, result_slots = {}, slots = {};
    bool has_base = false;
  };

  // The input whose sequences the result has.
  int carried(const GraphNode& node, const Part& part, const Arg& out) const {
    const int source = parts_.inferred(node).out(out.slot).lod_level - 1;
    for (size_t k = 0; source >= 0 && k < part.ins.size(); ++k) {
      if (part.ins[k].var == node.ins[static_cast<size_t>(source)]) return static_cast<int>(k);
    }
    return -1;
  }

  void add_step(Made& made, const GraphNode& node, const Part& part, const Arg& out) const {
    const ir::Op& op = *node.op;
    const bool joins = op.has_attr("axis"), grad = out.slot != kElementwiseOuts[0];
    const auto step = std::to_string(made.results.size());
    made.plan.insert(made.plan.end(),
                     {joins ? 1 + grad : 0, joins ? op.attr<int32_t>("axis") : -1,
                      joins && out.slot == kElementwiseOuts[2] ? 1 : 0, static_cast<int>(part.ins.size())});
    made.lods.push_back(carried(node, part, out));
    for (const Arg& in : part.ins) {
      made.plan.push_back(made.operand.at(in.var));
      made.slots.emplace_back(in.slot);
    }
    made.types.push_back(op.type);
    made.result_slots.emplace_back(out.slot);
    made.results.push_back(out.var);
    const OpDef& def = find_op(op.type);
    for (const auto& [name, value] : op.attrs) {
      if (def.find_attr(name)) made.node.attr(step + "." + name, value);
    }
  }

  bool replace(const std::vector<int>& parts) {
    std::vector<Part> all(parts.size());
    Made made{.node = NodeBuilder(graph_, "fused_elementwise", graph_.nodes[parts[0]])};
    std::vector<int> inputs;
    for (size_t k = 0; k < parts.size(); ++k) parts_.fits(parts[k], &all[k]);
    const auto made_here = [&](int var) {
      return std::any_of(all.begin(), all.end(), [var](const Part& p) {
        return std::any_of(p.outs.begin(), p.outs.end(), [var](const Arg& a) { return a.var == var; });
      });
    };
    for (const Part& p : all) {
      for (const Arg& in : p.ins) {
        if (!made_here(in.var) && std::find(inputs.begin(), inputs.end(), in.var) == inputs.end())
          inputs.push_back(in.var);
      }
    }
    made.has_base = put_base_last(parts, all.back().outs.back().var, &inputs);
    for (size_t k = 0; k < inputs.size(); ++k) made.operand[inputs[k]] = static_cast<int>(k);
    for (size_t k = 0; k < parts.size(); ++k) {
      // all steps of a node read the earlier value
      for (const Arg& out : all[k].outs) add_step(made, graph_.nodes[parts[k]], all[k], out);
      for (const Arg& out : all[k].outs) {
        const auto at = std::find(made.results.begin(), made.results.end(), out.var) - made.results.begin();
        made.operand[out.var] = static_cast<int>(inputs.size()) + static_cast<int>(at);
      }
    }
    GraphNode node = finish(std::move(made), parts, std::move(inputs));
    if (parts_.on_device(node) && !parts_.device_runs(node)) return false;
    edit_.replace(parts, std::move(node));
    return true;
  }

  // An input without later readers: the last result may take its memory.
  bool put_base_last(const std::vector<int>& parts, int result, std::vector<int>* inputs) const {
    for (auto v = inputs->begin(); v != inputs->end(); ++v) {
      const GraphVar& var = graph_.vars[*v];
      if (needed(*v, parts) || var.fed || var.desc.persistable || !rows_.same_shape(*v, result)) continue;
      std::rotate(v, v + 1, inputs->end());
      return true;
    }
    return false;
  }

  GraphNode finish(Made made, const std::vector<int>& parts, std::vector<int> inputs) const {
    int base = -1;
    if (made.has_base) {
      base = inputs.back();
      inputs.pop_back();
    }
    std::vector<int> kept;
    for (size_t s = 0; s < made.results.size(); ++s) {
      const bool last = s + 1 == made.results.size() && kept.empty();
      if (!needed(made.results[s], parts) && !last) continue;
      made.outs.push_back(static_cast<int32_t>(s));
      kept.push_back(made.results[s]);
    }
    const int result = kept.back();
    kept.pop_back();
    if (auto pairs = role_vars_of(graph_, parts); !pairs.empty()) made.node.attr("op_role_var", std::move(pairs));
    return made.node.attr("plan", std::move(made.plan))
        .attr("lods", std::move(made.lods))
        .attr("types", std::move(made.types))
        .attr("results", std::move(made.result_slots))
        .attr("slots", std::move(made.slots))
        .attr("outs", std::move(made.outs))
        .in("X", inputs)
        .in("Base", base)
        .out("Out", kept)
        .out("Result", result)
        .done();
  }

  Graph& graph_;
  GraphEdit edit_;
  const RowSources rows_;
  const ElementwiseParts parts_;
  std::vector<int> group_of_;  // of the nodes visited so far
};

}  // namespace

const Pass kFuseElementwise = {
    .name = "fuse_elementwise",
    .what =
        "fuses elementwise ops of one shape, and computes them tile by tile in the cache, or in one launch on devices",
    .tolerance = "bit-equal",
    .needs = AB_SWITCH(fuse_elewise_add_act_ops),
    .needs_flag = "FLAGS_fuse_elementwise",
    .in_bodies = true,
    .on_devices = true,
    .run = [](Graph& g, const PassContext& c) { return ElementwiseFuser(g, c).run(); }};

}  // namespace anabranch
