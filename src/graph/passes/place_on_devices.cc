// place_on_devices: ops with kernels for a device run there, the others on the CPU, and copies connect them. A value is
// copied once for all its readers. Persistent values are where a device node uses them, so that parameters stay on the
// device from step to step; fed and fetched values are on the host. Sparse rows are copied to the host to be read on
// the CPU; rows computed on the CPU stay there.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/counted.h"
#include "graph/edit.h"
#include "graph/on_device.h"
#include "graph/passes/for_devices.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

constexpr const char* kCopy = "copy_between_places";

class Placer {
 public:
  Placer(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    list_devices();
    int placed = 0;
    for (GraphNode& node : graph_.nodes) {
      const bool there = choose(node);
      placed += there;
      for (const int v : graph_.writes(node)) {
        if (!there && is_rows(graph_.vars[v])) made_on_cpu_.insert(v);
      }
    }
    if (placed == 0) return 0;
    ops_ = graph_.nodes.size();
    for (const GraphNode& node : graph_.nodes) {
      if (!node.on_device() && node.op->type != kCopy) on_cpu_.insert(node.op->type);
    }
    choose_homes();
    std::vector<GraphNode> nodes = std::move(graph_.nodes);
    for (GraphNode& node : nodes) add(std::move(node));
    bring_down_fetched();
    graph_.nodes = std::move(out_);
    note(placed);
    return placed;
  }

 private:
  static bool is_rows(const GraphVar& var) { return var.desc.kind == VarKind::kSelectedRows; }
  bool runs_there(const GraphNode& node) const {
    const auto reads = graph_.reads(node);
    return std::none_of(reads.begin(), reads.end(), [&](int v) { return made_on_cpu_.count(v) != 0; }) &&
           runs_on_device(graph_, node, metas_of(graph_, node));
  }

  // Of the replicas; empty if some are on the CPU or share a device.
  void list_devices() {
    for (const Place place : context_.places) devices_.push_back(place.id);
    const bool on_host =
        std::any_of(context_.places.begin(), context_.places.end(), [](Place p) { return p.on_host(); });
    const std::set<int32_t> different(devices_.begin(), devices_.end());
    if (on_host || different.size() < devices_.size() || different.size() < 2) devices_.clear();
  }

  // All devices run it at once, each with its replica's values. Sparse rows, whose numbers differ, are joined on one.
  bool is_together(const GraphNode& node) const {
    if (devices_.empty() || !(node.op->type == "all_reduce" || node.op->type == "broadcast_from_owner")) return false;
    return !is_rows(graph_.vars[node.ins[0]]);
  }

  // Communicators are used in rotation, and each gathers on another device.
  void join_devices(GraphNode& node) {
    const int number = together_ % context_.build.nccl_comm_num;
    auto op = std::make_shared<ir::Op>(*node.op);
    op->attrs["devices"] = devices_;
    op->attrs["communicator"] = int32_t{number};
    GraphNode joined = node;
    joined.op = std::move(op);
    if (!runs_there(joined)) return;
    joined.from = joined.place = context_.places[static_cast<size_t>(number) % context_.places.size()];
    node = std::move(joined);
    ++together_;
  }

  // Communicators between processes are used in rotation, in the same order in all processes.
  void join_processes(GraphNode& node) {
    if (node.op->type != "ring_sum") return;
    auto op = std::make_shared<ir::Op>(*node.op);
    op->attrs["communicator"] = int32_t{between_++ % context_.build.nccl_comm_num};
    node.op = std::move(op);
  }

  Place place_of(const GraphNode& node, int v) const {
    const bool own = node.on_device() && is_together(node);
    return own ? context_.places[static_cast<size_t>(graph_.vars[v].replica)] : node.place;
  }

  bool choose(GraphNode& node) {
    const Place place = context_.places[static_cast<size_t>(node.replica)];
    if (node.op->type == kCopy) return false;
    if (is_together(node)) {
      join_devices(node);
      return node.on_device();
    }
    if (place.on_host() || !runs_there(node)) return false;
    node.from = node.place = place;
    join_processes(node);
    return true;
  }

  void choose_homes() {
    std::vector<char> made(graph_.vars.size(), 0);
    for (const GraphNode& node : graph_.nodes) {
      for (const int v : graph_.writes(node)) {
        GraphVar& var = graph_.vars[v];
        if (!var.desc.persistable && !made[v] && !var.fed) var.place = place_of(node, v);
        made[v] = 1;
      }
      if (!node.on_device()) continue;
      for (const auto& touched : {graph_.reads(node), graph_.writes(node)}) {
        for (const int v : touched) {
          if (graph_.vars[v].desc.persistable && !is_rows(graph_.vars[v])) graph_.vars[v].place = place_of(node, v);
        }
      }
    }
    choose_homes_of_copies();
  }

  // A variable that one replica broadcasts is used by no other node on another replica: it is on that one's device.
  void choose_homes_of_copies() {
    for (const GraphNode& node : graph_.nodes) {
      if (node.op->type != kCopy || graph_.vars[node.ins[0]].place.on_host()) continue;
      GraphVar& to = graph_.vars[node.outs[0]];
      to.place = context_.places[static_cast<size_t>(to.replica)];
    }
  }

  static bool lies(const GraphVar& var, Place place) {
    return place.on_host() ? var.place.on_host() : var.place == place;
  }
  using DeviceCopy = std::pair<int, int>;  // variable, and the device that has a copy; -1: the host
  static DeviceCopy device_copy(int v, Place place) { return {v, place.on_host() ? -1 : place.id}; }

  // Another variable for the same value, at another place.
  int copy_of(int v, Place place) {
    GraphVar device_copy;
    const GraphVar& var = graph_.vars[v];
    device_copy.name = var.name;
    device_copy.replica = var.replica;
    device_copy.version = var.version;
    device_copy.desc = var.desc;
    device_copy.desc.persistable = false;
    device_copy.produced = true;
    device_copy.dynamic = var.dynamic;
    device_copy.place = place.on_host() && !var.place.on_host() ? Place::pinned() : place;
    graph_.vars.push_back(std::move(device_copy));
    return static_cast<int>(graph_.vars.size()) - 1;
  }

  void add_copy(int from, int to, const GraphNode& next_to) {
    const GraphVar &source = graph_.vars[from], &target = graph_.vars[to];
    GraphNode node = NodeBuilder(graph_, kCopy, next_to).in("X", from).out("Out", to).done();
    node.from = source.place;
    node.place = target.place;
    const char* way = target.place.on_host()   ? "to the host"
                      : source.place.on_host() ? "to the device"
                                               : "between devices";
    ++copies_[{way, next_to.op->type}];
    out_.push_back(std::move(node));
  }

  // Sparse rows of a device, copied into the pinned memory of `from`, for the CPU to read.
  void add_unpacking(int from, int to, const GraphNode& next_to) {
    out_.push_back(NodeBuilder(graph_, "rows_of_block", next_to).in("X", from).out("Out", to).done());
  }

  // The counted inputs of a replica's weight: an op that reads no values accepts any location.
  static bool only_counts(const GraphNode& node, int v) {
    if (node.op->type != "replica_weight" && node.op->type != "ring_weight") return false;
    return std::find(node.only_shapes.begin(), node.only_shapes.end(), v) != node.only_shapes.end();
  }

  // The variable at this place that holds the current value of v.
  int at(int v, Place place, const GraphNode& reader) {
    if (v < 0 || lies(graph_.vars[v], place)) return v;
    const auto [it, fresh] = device_copies_.try_emplace(device_copy(v, place), -1);
    if (fresh) {
      it->second = copy_of(v, place);
      add_copy(v, it->second, reader);
      if (place.on_host() && is_rows(graph_.vars[v])) {
        const int block = std::exchange(it->second, copy_of(it->second, place));
        add_unpacking(block, it->second, reader);
      }
    }
    return it->second;
  }

  // The node's output in place of v; *changed: variables to copy back afterwards.
  int target_of(int v, Place place, const std::vector<int>& reads, const GraphNode& node,
                std::vector<std::pair<int, int>>* changed) {
    if (v < 0 || lies(graph_.vars[v], place)) return v;
    const bool in_place = std::find(reads.begin(), reads.end(), v) != reads.end();
    const int device_copy = in_place ? at(v, place, node) : copy_of(v, place);
    changed->emplace_back(v, device_copy);
    return device_copy;
  }

  // Between replicas: from one location to the other.
  void add_between(GraphNode node) {
    node.from = graph_.vars[node.ins[0]].place;
    node.place = graph_.vars[node.outs[0]].place;
    const int v = node.outs[0];
    device_copies_.erase(device_copies_.lower_bound({v, -1}), device_copies_.lower_bound({v + 1, -1}));
    out_.push_back(std::move(node));
  }

  void add(GraphNode node) {
    if (node.op->type == kCopy) return add_between(std::move(node));
    const std::vector<int> reads = graph_.reads(node), writes = graph_.writes(node);  // the node changes
    const GraphNode original = node;
    const bool together = node.on_device() && is_together(node);  // all arguments are present
    std::vector<std::pair<int, int>> changed;
    for (auto* list : {&node.ins, &node.more_reads, &node.only_shapes}) {
      for (int& v : *list) {
        if (!only_counts(original, v)) v = at(v, together ? place_of(original, v) : node.from, original);
      }
    }
    for (int& v : node.outs) v = target_of(v, together ? place_of(original, v) : node.place, reads, original, &changed);
    // A block may leave its outputs unchanged.
    for (int& v : node.more_writes) v = target_of(v, node.place, writes, original, &changed);
    out_.push_back(std::move(node));
    for (const int v : writes)
      device_copies_.erase(device_copies_.lower_bound({v, -1}), device_copies_.lower_bound({v + 1, -1}));
    for (const auto& [v, made] : changed) {
      if (is_rows(graph_.vars[v]) && graph_.vars[v].place.on_host()) {
        const int block = copy_of(made, Place());
        add_copy(made, block, original);
        add_unpacking(block, v, original);
      } else {
        add_copy(made, v, original);
      }
      device_copies_[device_copy(v, graph_.vars[made].place)] = made;
    }
  }

  void bring_down_fetched() {
    for (int v = 0, n = static_cast<int>(graph_.vars.size()); v < n; ++v) {
      if (!graph_.vars[v].fetched || graph_.vars[v].place.on_host()) continue;
      const auto writer = std::find_if(out_.rbegin(), out_.rend(), [&](const GraphNode& node) {
        return std::count(node.outs.begin(), node.outs.end(), v) + std::count(node.ins.begin(), node.ins.end(), v) > 0;
      });
      const GraphNode next_to = *writer;
      const int host = at(v, Place(), next_to);
      graph_.vars[host].fetched = true;
      graph_.give_on_host(v, host);
    }
  }

  void note(int placed) const {
    if (!context_.notes) return;
    context_.notes->push_back(fmt::format("{} of {} ops run on a device; on the CPU: {}", placed, ops_,
                                          on_cpu_.empty() ? "none" : fmt::format("{}", fmt::join(on_cpu_, ", "))));
    note_meetings();
    for (const auto& [what, count] : copies_) {
      context_.notes->push_back(fmt::format("{} {} for {}", counted(count, "copy", "copies"), what.first, what.second));
    }
  }

  // Nodes that meet other processes, and whether their data passes through the host.
  void note_meetings() const {
    std::map<std::pair<std::string, bool>, int> found;
    for (const GraphNode& node : graph_.nodes) {
      if (find_op(node.op->type).has(kAsynchronous)) ++found[{node.op->type, node.on_device()}];
    }
    for (const auto& [what, count] : found) {
      context_.notes->push_back(fmt::format("{} {} between processes, {}", count, what.first,
                                            what.second ? "device to device" : "through the CPU"));
    }
  }

  Graph& graph_;
  const PassContext& context_;
  std::vector<int32_t> devices_;
  int together_ = 0;  // nodes on all devices so far
  int between_ = 0;   // nodes of processes that add up on devices
  size_t ops_ = 0;
  std::set<std::string> on_cpu_;  // types of ops that stay there
  std::set<int> made_on_cpu_;     // sparse rows
  std::vector<GraphNode> out_;
  std::map<DeviceCopy, int> device_copies_;
  std::map<std::pair<std::string, std::string>, int> copies_;  // (direction, reading op) -> number of copies
};

int place_on_devices(Graph& graph, const PassContext& context) {
  describe_versions(graph, context.program->block(0));
  settle_copies(graph);
  fuse_squares_of_rows(graph);
  return Placer(graph, context).run();
}

}  // namespace

const Pass kPlaceOnDevices = {
    .name = "place_on_devices",
    .what = "runs ops on the device if it has kernels for them, and copies values between the device and the CPU",
    .tolerance = "within the rounding of the device's functions and sums",
    .on_devices = true,
    .skip = skip_on_cpu,
    .run = place_on_devices};

}  // namespace anabranch
