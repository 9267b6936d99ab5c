#include "graph/replicate.h"

#include <algorithm>
#include <map>

#include "graph/edit.h"
#include "graph/loss_seed.h"
#include "graph/outer_names.h"
#include "graph/versions.h"
#include "ir/interface.h"
#include "ir/versions.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

constexpr int kOrderToken = 0;  // held by ops with an effect outside the graph: print, files, readers

bool is_update(const ir::Op& op) { return (op.role() & ir::role::kOptimize) != 0; }

class Replicator {
 public:
  Replicator(const ir::Program& program, const ReplicateOptions& options)
      : program_(program), block_(program.global_block()), options_(options), outer_names_(program), versions_(graph_) {
    graph_.replicas = options.replicas;
    parallel_ = options.data_parallel && options.replicas > 1;
    if (parallel_) shared_ = shared_persistables(program);
    for (const auto& name : options.fed) shared_.erase(name);  // every replica may be fed a value of its own
    owned_elems_.resize(options.replicas, 0);
    training_ = options.data_parallel && options.replicas > 1 && !options.loss_name.empty();
    batch_dependent_ = options.fed;
    find_branches();
    if (parallel_) find_looked_at();
  }

  Graph build() {
    for (const auto& name : options_.fed) mention(name, /*fed=*/true);
    find_old_reads();
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      const ir::OpRef& op = block_.ops()[i];
      if (!is_done_outside(*op)) add(static_cast<int>(i), checked_copy(*op));
    }
    keep_last_versions();
    for (const auto& name : options_.fetched) mention(name, /*fed=*/false);
    for (int v = 0; v < static_cast<int>(graph_.vars.size()); ++v) {
      GraphVar& var = graph_.vars[v];
      var.fed = var.version == 0 && options_.fed.count(var.name) != 0;
      var.fetched = options_.fetched.count(var.name) != 0 && v == graph_.fetched_as(var.name, var.replica);
    }
    drop_unknown_counts();
    return std::move(graph_);
  }

 private:
  void find_old_reads() {
    std::map<int, size_t> op_of;  // by its blocks
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      const ir::Op& op = *block_.ops()[i];
      for (const ir::VersionRead& read : ir::version_reads(op)) {
        versions_.will_read(op.input(read.slot).at(read.arg), read.version);
      }
      for (int sub : op.sub_blocks()) {
        op_of[sub] = i;
        const auto forward = op_of.find(program_.block(sub).forward_block);
        if (forward != op_of.end()) find_old_reads_of_block(sub, forward->second, i);
      }
    }
  }

  // The gradient of a block reads what the block has read (see read()), which somebody may have written since.
  void find_old_reads_of_block(int gradient, size_t forward, size_t end) {
    std::set<std::string> written;
    for (size_t i = forward; i < end; ++i) {
      for (const auto& name : block_.ops()[i]->output_args()) written.insert(name);
    }
    for (const auto& name : outer_names_.of(gradient).reads) {
      if (written.count(name)) versions_.will_read(name, ir::writes_before(block_, name, forward));
    }
  }

  void find_branches() {
    if (!training_) return;
    AB_CHECK(block_.find_var_recursive(options_.loss_name) != nullptr, NotFound,
             "loss_name {} names no variable of the program", options_.loss_name);
    if (options_.exact_fluid || options_.build.gradient_scale_strategy != GradientScale::kCoeffNumDevice) return;
    branches_ = loss_branches(block_);
  }

  void find_looked_at() {
    looked_at_ = options_.fetched;
    for (const auto& op : block_.ops()) {
      if (is_update(*op)) continue;
      for (const auto& n : op->input_args()) looked_at_.insert(n);
      for (int sub : op->sub_blocks()) {
        for (const auto& n : outer_names_.of(sub).reads) looked_at_.insert(n);
      }
    }
  }

  // Feeds, fetches and readers are served by the caller of the run: a read whose variables are fed is done.
  bool is_done_outside(const ir::Op& op) const {
    if (ir::is_interface(op)) return true;
    const OpDef* def = find_op_or_null(op.type);
    const auto outs = def && def->is(kServed) ? op.output_args() : std::vector<std::string>{};
    return !outs.empty() && std::all_of(outs.begin(), outs.end(), [&](const auto& n) {
      return options_.fed.count(n) != 0 || describe(n).kind == VarKind::kReader;
    });
  }

  // ---- one op
  void add(int index, const ir::OpRef& op) {
    if (training_ && is_loss_seed(*op)) {
      add_seed(index, op);
      return;
    }
    check_parallel(*op);
    if (parallel_ && is_update(*op)) {
      add_node(index, op, owner_of(*op), true);
      return;
    }
    const bool skips_idle = note_batch_dependence(*op) && !is_update(*op);
    for (int r = 0; r < (skips_idle ? options_.active : options_.replicas); ++r) add_node(index, op, r, false);
    if (training_) {
      weight_branches(index);
      if (is_update(*op)) return;  // clips name their gradient too, but it has been summed by then
      for (const auto& [param, grad] : op->role_vars()) add_collective(index, op, param, grad);
    }
  }

  void check_parallel(const ir::Op& op) const {
    if (options_.replicas == 1 || !options_.data_parallel) return;
    for (int sub : op.sub_blocks()) {
      for (const auto& inner : program_.block(sub).ops()) {
        AB_CHECK(!is_update(*inner), Unsupported,
                 "op {} updates a parameter inside a control-flow block: this works "
                 "on one replica, not on {}",
                 inner->type, options_.replicas);
      }
    }
  }

  // True when the op works on rows of the batch (or is part of the backward pass), so that a replica without rows has
  // nothing to do for it.
  bool note_batch_dependence(const ir::Op& op) {
    const auto ins = op.input_args();
    bool depends = (op.role() & ir::role::kBackward) != 0 && training_;
    depends |= std::any_of(ins.begin(), ins.end(), [&](const auto& n) { return batch_dependent_.count(n) != 0; });
    for (int sub : op.sub_blocks()) {
      for (const auto& n : outer_names_.of(sub).reads) depends |= batch_dependent_.count(n) != 0;
    }
    if (depends && !is_update(op)) {
      for (const auto& n : op.output_args()) {
        const auto desc = block_.find_var_recursive(n);
        if (!desc || !desc->persistable) batch_dependent_.insert(n);
      }
    }
    return depends;
  }

  // ---- variables
  const ir::Var& describe(const std::string& name) const {
    static const ir::Var discarded;
    if (name == kDiscarded) return discarded;
    const auto desc = block_.find_var_recursive(name);
    AB_CHECK(desc != nullptr, NotFound, "variable {} is not in the program", name);
    return *desc;
  }

  // The replica whose variable `name` means to a node of `replica`. Parameters and optimizer state exist once, and what
  // update ops computed is found where it was computed.
  int place_of(const std::string& name, int replica, bool update) const {
    if (shared_.count(name)) return 0;
    const auto it = update ? home_.find(name) : home_.end();
    return it == home_.end() ? replica : it->second;
  }

  // What building a node needs to know about its op.
  struct Site {
    const ir::Op& op;
    const OpDef& def;
    int replica;
    bool update;
  };

  // The gradient of a block reads what the block has read, whatever was written since.
  int read(const Site& at, const std::string& name) {
    for (int sub : at.op.sub_blocks()) {
      const auto seen = seen_.find({program_.block(sub).forward_block, at.replica});
      if (seen == seen_.end()) continue;
      if (const auto it = seen->second.find(name); it != seen->second.end()) return it->second;
    }
    return versions_.read(name, place_of(name, at.replica, at.update), describe(name));
  }

  // A gradient op may say that it reads an older value than the current one.
  int read_arg(const Site& at, const ir::Slot& slot, size_t i) {
    const std::string& name = slot.args[i];
    const auto writes = ir::version_read(at.op, slot.name, i);
    if (!writes) return read(at, name);
    return versions_.read_after(*writes, name, place_of(name, at.replica, at.update), describe(name));
  }

  // An output that is an input, changed, keeps its variable.
  int updated_input(const Site& at, const GraphNode& node, const std::string& slot, size_t i) const {
    const std::string& name = at.op.output(slot)[i];
    if (versions_.must_stay(name, place_of(name, at.replica, at.update))) return -1;
    size_t first = 0;
    for (const ir::Slot& in : at.op.inputs) {
      const bool same = i < in.args.size() && in.args[i] == name;
      if (same && at.def.is_update(in.name, slot)) return node.ins[first + i];
      first += in.args.size();
    }
    return -1;
  }

  void read_args(const Site& at, GraphNode& node) {
    for (const auto& s : at.op.inputs) {
      for (size_t i = 0; i < s.args.size(); ++i) {
        node.ins.push_back(s.args[i] == ir::kEmptyVar ? -1 : read_arg(at, s, i));
      }
    }
    for (int sub : at.op.sub_blocks()) {
      auto& seen = seen_[{sub, at.replica}];
      for (const auto& n : outer_names_.of(sub).reads) node.more_reads.push_back(seen[n] = read(at, n));
      for (const auto& n : at.op.input_args()) seen[n] = read(at, n);
    }
  }

  // Outputs that may keep what they held, and what sub-blocks write. Before the arguments are read: an op that reads
  // such a variable, too, works on the copy.
  void keep_outputs(const Site& at, GraphNode& node) {
    const auto keep = [&](const std::string& name) {
      const int replica = place_of(name, at.replica, at.update);
      int copied = -1;
      const int var = versions_.keep(name, replica, describe(name), &copied);
      if (copied >= 0) push_copy(node, copied, var);
      return var;
    };
    if (at.def.has(kKeepsOutputs)) {
      for (const auto& s : at.op.outputs) {
        for (const auto& a : s.args) node.outs.push_back(a == ir::kEmptyVar ? -1 : keep(a));
      }
    }
    for (int sub : at.op.sub_blocks()) {
      for (const auto& n : outer_names_.of(sub).writes) node.more_writes.push_back(keep(n));
    }
  }

  void write_args(const Site& at, GraphNode& node) {
    for (const auto& s : at.op.outputs) {
      for (size_t i = 0; i < s.args.size(); ++i) {
        if (s.args[i] == ir::kEmptyVar) {
          node.outs.push_back(-1);
          continue;
        }
        const int updated = updated_input(at, node, s.name, i);
        const int replica = place_of(s.args[i], at.replica, at.update);
        node.outs.push_back(updated >= 0 ? updated : versions_.write(s.args[i], replica, describe(s.args[i])));
      }
    }
  }

  GraphNode& add_node(int index, const ir::OpRef& op, int replica, bool update) {
    const Site at{*op, find_op(op->type), replica, update};
    GraphNode node;
    node.op = op;
    node.index = index;
    node.replica = replica;
    keep_outputs(at, node);
    read_args(at, node);
    if (update) {
      for (const auto& n : op->output_args()) {
        if (!shared_.count(n)) home_[n] = replica;
      }
    }
    if (node.outs.empty()) write_args(at, node);
    const auto written = block_.ops()[index]->output_args();
    for (const auto& n : std::set<std::string>(written.begin(), written.end())) {
      versions_.written(n, place_of(n, replica, update));
    }
    if (at.def.has(kOrdered)) node.tokens.push_back(kOrderToken);
    return push(std::move(node));
  }

  // A node's shapes depend on values when its op says so, or when it reads what has such a shape. A variable that the
  // node changes in place keeps its shape.
  GraphNode& push(GraphNode node) {
    bool dynamic = find_op(node.op->type).is_dynamic(*node.op);
    const auto reads = graph_.reads(node);
    for (int v : reads) dynamic |= graph_.vars[v].dynamic;
    for (int v : graph_.writes(node)) {
      const bool changes = std::find(reads.begin(), reads.end(), v) != reads.end();
      graph_.vars[v].produced |= !changes;
      graph_.vars[v].dynamic |= dynamic && !changes;
      versions_.touch(v);
    }
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back();
  }

  void push_copy(const GraphNode& beside, int from, int to) {
    NodeBuilder copy(graph_, "copy_value", beside);
    GraphNode node = copy.in("X", from).out("Out", to).done();
    node.replica = graph_.vars[to].replica;
    push(std::move(node));
  }

  // The scope sees the last version of a persistable variable.
  void keep_last_versions() {
    for (const auto& [first, last] : versions_.renewed()) {
      if (!graph_.vars[first].desc.persistable) continue;
      const int writer = last_node_that_writes(last);
      const bool dynamic = graph_.vars[first].dynamic;
      push_copy(graph_.nodes[writer], last, first);
      graph_.vars[first].dynamic = dynamic;  // nobody reads it after the copy
    }
  }

  int last_node_that_writes(int var) const {
    int i = static_cast<int>(graph_.nodes.size()) - 1;
    for (; i > 0; --i) {
      const auto writes = graph_.writes(graph_.nodes[i]);
      if (std::find(writes.begin(), writes.end(), var) != writes.end()) break;
    }
    return i;
  }

  // ---- collectives
  int owner_of(const ir::Op& op) {
    const auto pairs = op.role_vars();
    const auto outs = op.output_args();
    const bool updates = std::any_of(outs.begin(), outs.end(), [&](const auto& n) { return shared_.count(n) != 0; });
    for (const auto& [param, grad] : pairs) {
      AB_CHECK(pairs.size() == 1 || !updates, InvalidArgument,
               "op_role_var of {}, which updates a parameter, must name one parameter, got {}", op.type, pairs.size());
      if (auto it = home_.find(grad); it != home_.end()) return it->second;
    }
    for (const auto& n : op.input_args()) {
      if (auto it = home_.find(n); it != home_.end()) return it->second;
    }
    return 0;
  }

  int least_loaded(const std::string& grad) {
    const int owner =
        static_cast<int>(std::min_element(owned_elems_.begin(), owned_elems_.end()) - owned_elems_.begin());
    owned_elems_[owner] += std::max<int64_t>(1, describe(grad).shape.numel());
    return owner;
  }

  // The gradient of a parameter becomes the sum over the replicas, on its owner, who alone updates the parameter; in
  // AllReduce mode also on the others, where somebody looks at it.
  void add_collective(int index, const ir::OpRef& op, const std::string& param, const std::string& grad) {
    const auto outs = op->output_args();
    if (std::find(outs.begin(), outs.end(), grad) == outs.end()) return;
    const int owner = least_loaded(grad);
    home_[grad] = owner;
    const bool everywhere = options_.build.reduce_strategy == ReduceMode::kAllReduce && looked_at_.count(grad) != 0;
    std::vector<int> parts, sums;
    for (int r = 0; r < options_.active; ++r) parts.push_back(versions_.read(grad, r, describe(grad)));
    for (int r = 0; r < options_.replicas; ++r) {
      if (everywhere || r == owner) sums.push_back(graph_.var(grad, r, describe(grad)));
    }
    NodeBuilder node(graph_, "all_reduce", op, index, owner);
    node.attr("op_role", int32_t{ir::role::kBackward}).attr("op_role_var", std::vector<std::string>{param, grad});
    push(node.in("X", parts).out("Out", sums).done());
  }

  // ---- the loss gradient
  void add_seed(int index, const ir::OpRef& op) {
    const auto scale = options_.build.gradient_scale_strategy;
    if (scale == GradientScale::kCustomized) {
      for (int r = 0; r < options_.replicas; ++r)
        graph_.var(op->output("Out").at(0), r, describe(op->output("Out")[0]));
      return;  // the user feeds it
    }
    const auto branches = branches_.find(index);
    const bool weighted = branches != branches_.end();
    const LossBranch* here = weighted ? made_by(branches->second, index) : nullptr;
    const float even = 1.0f / static_cast<float>(options_.exact_fluid ? options_.replicas : options_.active);
    for (int r = 0; r < options_.active; ++r) {
      if (here && !here->counted.empty()) {
        push_weight(index, op, *here, r, false);
        continue;
      }
      auto seed = std::make_shared<ir::Op>(*op);
      const bool one = scale == GradientScale::kOne || (weighted && !here);
      seed->attrs["value"] = one ? 1.0f : even;
      seed->attrs["str_value"] = std::string();
      add_node(index, seed, r, false);
    }
  }

  static const LossBranch* made_by(const std::vector<LossBranch>& branches, int index) {
    const auto it = std::find_if(branches.begin(), branches.end(), [&](const auto& b) { return b.made_by == index; });
    return it == branches.end() ? nullptr : &*it;
  }

  void weight_branches(int index) {
    for (const auto& [seed, branches] : branches_) {
      for (const auto& b : branches) {
        if (b.made_by != index) continue;
        for (int r = 0; r < options_.active; ++r) push_weight(index, block_.ops()[index], b, r, true);
      }
    }
  }

  void push_weight(int index, const ir::OpRef& near, const LossBranch& branch, int replica, bool in_place) {
    const std::string& grad = branch.gradient;
    std::vector<int> counted;
    for (int r = 0; r < options_.active && !branch.counted.empty(); ++r) {
      counted.push_back(versions_.read(branch.counted, r, describe(branch.counted)));
    }
    const int var =
        in_place ? versions_.read(grad, replica, describe(grad)) : versions_.write(grad, replica, describe(grad));
    NodeBuilder builder(graph_, "replica_weight", near, index, replica);
    builder.attr("op_role", int32_t{ir::role::kBackward | ir::role::kLoss})
        .attr("replica", int32_t{replica})
        .attr("active", int32_t{options_.active})
        .attr("dtype", static_cast<int32_t>(describe(grad).dtype));
    GraphNode node = builder.in("Counted", counted).in("X", in_place ? var : -1).out("Out", var).done();
    node.only_shapes = std::move(counted);
    push(std::move(node));
  }

  // ---- the whole graph
  // What is fed or fetched may be used by no op. A fed variable holds a value before the first op runs.
  void mention(const std::string& name, bool fed) {
    const auto desc = block_.find_var_recursive(name);
    if (!desc || !(desc->persistable || options_.fed.count(name))) return;  // the caller reports what is missing
    for (int r = 0; r < options_.replicas; ++r) {
      if (graph_.find(name, r) < 0 && !(r > 0 && shared_.count(name))) graph_.var(name, r, *desc);
      if (fed) versions_.touch(graph_.find(name, r));
    }
  }

  // A count that is known only at run time has to be waited for.
  void drop_unknown_counts() {
    for (GraphNode& node : graph_.nodes) {
      std::erase_if(node.only_shapes, [&](int v) { return graph_.vars[v].dynamic; });
    }
  }

  const ir::Program& program_;
  const ir::Block& block_;
  const ReplicateOptions& options_;
  OuterNamesOf outer_names_;
  Graph graph_;
  Versions versions_;
  bool parallel_ = false, training_ = false;
  std::set<std::string> shared_, batch_dependent_;
  std::set<std::string> looked_at_;  // gradients that are fetched, or read by other ops than updates
  std::map<std::pair<int, int>, std::map<std::string, int>> seen_;  // by block and replica: what it read from outside
  std::map<std::string, int> home_;  // replica on which an update op's result, or a reduced gradient, is
  std::vector<int64_t> owned_elems_;
  std::map<int, std::vector<LossBranch>> branches_;  // of each loss, by its seed op
};

}  // namespace

std::set<std::string> shared_persistables(const ir::Program& program) {
  std::set<std::string> shared, kept;
  for (int b = 0; b < program.num_blocks(); ++b) {
    for (const auto& v : program.block(b).vars()) {
      if (v->persistable) shared.insert(v->name);
    }
    for (const auto& op : program.block(b).ops()) {
      if (is_update(*op)) continue;
      for (const auto& n : written_args(*op)) kept.insert(n);
    }
  }
  for (const auto& n : kept) shared.erase(n);
  return shared;
}

Graph replicate(const ir::Program& program, const ReplicateOptions& options) {
  return Replicator(program, options).build();
}

}  // namespace anabranch
