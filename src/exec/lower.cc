#include "exec/lower.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "exec/block_plan.h"
#include "exec/node_shape.h"
#include "exec/queues.h"
#include "opdef/device_status.h"

namespace anabranch {
namespace {

class Lowerer {
 public:
  Lowerer(const Graph& graph, const LowerOptions& options) : graph_(graph), options_(options) {}

  Lowered run() {
    make_values();
    count_talkers();
    if (options_.program && options_.program->num_blocks() > 1) make_block_sets();
    std::vector<NodeSpec> specs;
    for (const GraphNode& node : graph_.nodes) {
      specs.push_back(make_spec(node));
      out_.capturable.push_back(capturable(node, specs.back()));
      out_.types.push_back(node.op->type);
      out_.replicas.push_back(node.replica);
      out_.writes.push_back(graph_.writes(node));
      std::string text = node.describe();
      if (graph_.replicas > 1) {
        text += talks_for_all(node) ? "  for all replicas" : fmt::format("  on replica {}", node.replica);
      }
      out_.describe.push_back(std::move(text));
    }
    out_.inner_nodes = std::move(inner_nodes_);
    if (bodies_) out_.explain_blocks = bodies_->explain();
    out_.trusts_shapes = bodies_ && bodies_->trusts_shapes();
    out_.plan = std::make_unique<Plan>(std::move(specs));
    for (int i = 0; i < out_.plan->size(); ++i) out_.plan->node(i).context.parallel = options_.parallel;
    if (out_.plan->queue_count() == 0) out_.capturable.clear();
    make_report();
    out_.blocks = block_sets_;
    return std::move(out_);
  }

 private:
  // Messages of a process: each replica sends its own, or one node stands for all replicas.
  static bool talks(const GraphNode& node) { return find_op(node.op->type).has(kAsynchronous); }
  void count_talkers() {
    for (const GraphNode& node : graph_.nodes) {
      if (talks(node)) talkers_[{node.index, node.op->type}].insert(node.replica);
    }
  }
  bool talks_for_all(const GraphNode& node) const {
    return talks(node) && talkers_.at({node.index, node.op->type}).size() == 1;
  }

  void make_values() {
    out_.values.resize(graph_.vars.size());
    out_.is_outside.resize(graph_.vars.size(), 0);
    std::vector<size_t> inside;
    for (size_t v = 0; v < graph_.vars.size(); ++v) {
      if (graph_.vars[v].same_buffer_as >= 0) continue;
      out_.values[v] = options_.outside(graph_.vars[v]);
      out_.is_outside[v] = out_.values[v] != nullptr;
      if (!out_.values[v]) inside.push_back(v);
    }
    out_.temporaries = std::vector<Value>(inside.size());
    for (size_t i = 0; i < inside.size(); ++i) out_.values[inside[i]] = &out_.temporaries[i];
    for (size_t v = 0; v < graph_.vars.size(); ++v) out_.values[v] = out_.values[graph_.buffer(static_cast<int>(v))];
  }

  void make_block_sets() {
    bodies_ = std::make_shared<BodyGraphs>(*options_.program, options_.build, options_.disable, graph_.replicas);
    for (int r = 0; r < graph_.replicas; ++r) {
      block_sets_.push_back(std::make_shared<BlockSet>(
          *options_.program, BlockSet::Options{.bodies = bodies_,
                                               .seed = options_.seed,
                                               .replica = r,
                                               .first_node = static_cast<int>(graph_.nodes.size()),
                                               .nodes = &inner_nodes_}));
    }
  }

  // Block 0 as the sub-blocks of a node see it: the versions of variables that the node reads and writes.
  BlockSet::Outer outer_of(const GraphNode& node) const {
    auto by_name = std::make_shared<std::unordered_map<std::string, Value*>>();
    for (const auto* ids : {&node.more_writes, &node.more_reads, &node.ins, &node.outs}) {
      for (int v : *ids) {
        if (v >= 0) by_name->try_emplace(graph_.vars[v].name, out_.values[v]);
      }
    }
    return [by_name](const std::string& name) -> Value* {
      const auto it = by_name->find(name);
      return it == by_name->end() ? nullptr : it->second;
    };
  }

  // A block and its gradient share frames: they never run concurrently, for any variables that their ops name.
  void add_block_tokens(const GraphNode& node, std::vector<int>* tokens) const {
    if (block_sets_.empty()) return;
    for (int sub : node.op->sub_blocks()) {
      const int forward = options_.program->block(sub).forward_block;
      const int shared = forward > 0 ? forward : sub;
      if (shared != sub || !block_sets_[node.replica]->gradients_of(sub).empty()) {
        tokens->push_back((1 << 20) + node.replica * options_.program->num_blocks() + shared);
      }
    }
  }

  void make_report() {
    std::map<int, std::vector<std::pair<std::shared_ptr<BlockSet>, int>>> runs;
    for (size_t i = 0; i < graph_.nodes.size() && !block_sets_.empty(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      for (int sub : node.op->sub_blocks()) {
        runs[static_cast<int>(i)].emplace_back(block_sets_[static_cast<size_t>(node.replica)], sub);
      }
    }
    out_.report = [runs = std::move(runs), describe = out_.describe](int node) {
      std::string text = describe[static_cast<size_t>(node)];
      const auto it = runs.find(node);
      if (it == runs.end()) return text;
      for (const auto& [set, block] : it->second) text += set->where(block);
      return text;
    };
  }

  bool initializes(const GraphNode& node) const {
    return std::all_of(node.outs.begin(), node.outs.end(),
                       [&](int v) { return v < 0 || graph_.vars[v].desc.persistable; });
  }

  // Its values are on several devices, each on that of its replica.
  bool joins_devices(const GraphNode& node) const {
    if (!node.on_device() || !(node.from == node.place)) return false;
    const auto& shapes = node.only_shapes;
    const auto elsewhere = [&](int v) {
      const bool touched = v >= 0 && std::find(shapes.begin(), shapes.end(), v) == shapes.end();
      return touched && !(graph_.vars[v].place == node.place);
    };
    return std::any_of(node.ins.begin(), node.ins.end(), elsewhere) ||
           std::any_of(node.outs.begin(), node.outs.end(), elsewhere);
  }

  // Only the shape of some input is read, for any location of its value.
  bool counts_elsewhere(const GraphNode& node) const {
    return std::any_of(node.only_shapes.begin(), node.only_shapes.end(), [&](int v) {
      const Place lies = graph_.vars[v].place;
      return !(lies.on_host() && node.from.on_host()) && !(lies == node.from);
    });
  }

  RuntimeShapes::Places places_of(const GraphNode& node) const {
    RuntimeShapes::Places places{node.from, node.place};
    if (!joins_devices(node) && !counts_elsewhere(node)) return places;
    const auto place_of = [&](int v) { return v < 0 ? Place() : graph_.vars[v].place; };
    std::transform(node.ins.begin(), node.ins.end(), std::back_inserter(places.each_from), place_of);
    std::transform(node.outs.begin(), node.outs.end(), std::back_inserter(places.each_to), place_of);
    return places;
  }

  int queue_index_of(const GraphNode& node) const {
    using device::QueueKind;
    if (!node.on_device()) return kHost;
    // Like copies between devices: compute queues go on meanwhile.
    const bool meets = find_op(node.op->type).has(kAsynchronous);
    if (meets || joins_devices(node)) return anabranch::queue_index_of(node.place.id, QueueKind::kUp);
    if (node.from.on_host()) return anabranch::queue_index_of(node.place.id, QueueKind::kUp);
    if (node.place.on_host()) return anabranch::queue_index_of(node.from.id, QueueKind::kDown);
    if (!(node.from == node.place)) return anabranch::queue_index_of(node.place.id, QueueKind::kUp);
    return anabranch::queue_index_of(node.place.id, QueueKind::kCompute);
  }

  // Its launch may differ in the next run.
  const char* why_apart(const GraphNode& node, const NodeSpec& spec) const {
    if (spec.dynamic) return "whose shapes depend on values";
    if (joins_devices(node)) return "of several devices at once";
    if (find_op(node.op->type).has(kAsynchronous)) return "that meet other processes";
    if (find_op(node.op->type).has(kOrdered)) return "that must keep their order";
    const auto on_host = [&](int v) { return v >= 0 && graph_.vars[v].place.on_host(); };
    const bool reads_host = std::any_of(node.ins.begin(), node.ins.end(), on_host);
    return reads_host ? "that read memory of the host" : nullptr;
  }

  Capturable capturable(const GraphNode& node, const NodeSpec& spec) const {
    if (spec.queue_index == kHost) return {};
    Capturable made{why_apart(node, spec), {spec.ins.begin(), spec.ins.end()}};
    made.touches.insert(made.touches.end(), spec.outs.begin(), spec.outs.end());
    return made;
  }

  NodeSpec make_spec(const GraphNode& node) {
    NodeSpec spec;
    spec.replica = node.replica + options_.first_replica;
    for (int v : node.ins) spec.ins.push_back(v < 0 ? nullptr : out_.values[v]);
    for (int v : node.outs) spec.outs.push_back(v < 0 ? nullptr : out_.values[v]);
    const OpDef& def = find_op(node.op->type);
    spec.dynamic = def.is_dynamic(*node.op);
    for (int v : graph_.reads(node)) {
      spec.dynamic |= graph_.vars[v].dynamic;
      if (std::find(node.only_shapes.begin(), node.only_shapes.end(), v) == node.only_shapes.end()) {
        spec.reads.push_back(graph_.buffer(v));
      }
    }
    for (int v : graph_.writes(node)) spec.writes.push_back(graph_.buffer(v));
    out_.has_dynamic |= spec.dynamic;
    spec.tokens = node.tokens;
    add_block_tokens(node, &spec.tokens);
    spec.queue_index = queue_index_of(node);
    spec.later = spec.queue_index == kHost && def.has(kAsynchronous);
    spec.status = spec.queue_index != kHost && (def.has(kRandom) || reports_faults(node.op->type));
    NodeFactory factory{.def = &def,
                        .op = node.op,
                        .seed = options_.seed,
                        .blocks = {},
                        .place = node.index,
                        .places = places_of(node),
                        .on_device = node.on_device(),
                        .initializes = options_.seeded && initializes(node)};
    if (def.has(kRunsBlock) && !block_sets_.empty()) {
      for (int sub : node.op->sub_blocks()) block_sets_[node.replica]->prepare(sub, outer_of(node));
      // The factory owns the set, so that it lives as long as the plan does.
      factory.blocks = [set = block_sets_[node.replica]](int block) { return set->runner(block); };
    }
    spec.shape = make_shape_fn(factory);
    return spec;
  }

  const Graph& graph_;
  const LowerOptions& options_;
  Lowered out_;
  std::shared_ptr<BodyGraphs> bodies_;
  std::vector<InnerNode> inner_nodes_;
  std::vector<std::shared_ptr<BlockSet>> block_sets_;
  std::map<std::pair<int, std::string>, std::set<int>> talkers_;  // replicas, by position and type of the op
};

}  // namespace

Lowered lower(const Graph& graph, const LowerOptions& options) { return Lowerer(graph, options).run(); }

}  // namespace anabranch
