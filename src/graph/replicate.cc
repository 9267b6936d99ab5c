#include "graph/replicate.h"

#include <algorithm>
#include <map>

#include "graph/effects.h"
#include "graph/loss_seed.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

constexpr int kOrderToken = 0;  // held by ops with an effect outside the graph: print, files, readers

bool is_update(const ir::Op& op) { return (op.role() & ir::role::kOptimize) != 0; }

// Feeds, fetches and readers are served by whoever runs the graph: a read whose variables are fed is done.
bool is_done_outside(const ir::Op& op, const std::set<std::string>& fed) {
  if (op.type == "feed" || op.type == "fetch") return true;
  if (op.type == "create_py_reader" || op.type == "create_double_buffer_reader") return true;
  const auto outs = op.type == "read" ? op.output_args() : std::vector<std::string>{};
  return !outs.empty() && std::all_of(outs.begin(), outs.end(), [&](const auto& n) { return fed.count(n) != 0; });
}

class Replicator {
 public:
  Replicator(const ir::Program& program, const ReplicateOptions& options)
      : program_(program), block_(program.global_block()), options_(options) {
    graph_.replicas = options.replicas;
    parallel_ = options.data_parallel && options.replicas > 1;
    if (parallel_) shared_ = shared_persistables(program);
    for (const auto& name : options.fed) shared_.erase(name);  // every replica may be fed a value of its own
    owned_elems_.resize(options.replicas, 0);
    training_ = options.data_parallel && options.replicas > 1 && !options.loss_name.empty();
    batch_dependent_ = options.fed;
    find_branches();
    if (parallel_) find_seen();
  }

  Graph build() {
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      const ir::OpRef& op = block_.ops()[i];
      if (!is_done_outside(*op, options_.fed)) add(static_cast<int>(i), checked_copy(*op));
    }
    for (const auto& name : options_.fetched) mention(name);
    for (const auto& name : options_.fed) mention(name);
    for (GraphVar& v : graph_.vars) {
      v.fed = options_.fed.count(v.name) != 0;
      v.fetched = options_.fetched.count(v.name) != 0;
    }
    mark_dynamic();
    return std::move(graph_);
  }

 private:
  void find_branches() {
    if (!training_) return;
    AB_CHECK(block_.find_var_recursive(options_.loss_name) != nullptr, NotFound,
             "loss_name {} names no variable of the program", options_.loss_name);
    if (options_.exact_fluid || options_.build.gradient_scale_strategy != GradientScale::kCoeffNumDevice) return;
    branches_ = loss_branches(block_, options_.loss_name);
    for (const auto& b : branches_) last_grad_op_[ir::grad_name(b.var)] = last_writer(ir::grad_name(b.var));
  }

  void find_seen() {
    seen_ = options_.fetched;
    for (const auto& op : block_.ops()) {
      if (is_update(*op)) continue;
      for (const auto& n : op->input_args()) seen_.insert(n);
      for (int sub : op->sub_blocks()) {
        for (const auto& n : outer_names(program_, sub).reads) seen_.insert(n);
      }
    }
  }

  int last_writer(const std::string& name) const {
    int last = -1;
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      const auto outs = block_.ops()[i]->output_args();
      if (std::find(outs.begin(), outs.end(), name) != outs.end()) last = static_cast<int>(i);
    }
    return last;
  }

  // ---- one op
  void add(int index, const ir::OpRef& op) {
    if (training_ && op->role() == (ir::role::kBackward | ir::role::kLoss) && op->type == "fill_constant") {
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
      for (const auto& [param, grad] : op->role_vars()) add_collective(index, *op, param, grad);
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
      for (const auto& n : outer_names(program_, sub).reads) depends |= batch_dependent_.count(n) != 0;
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
    const auto desc = block_.find_var_recursive(name);
    AB_CHECK(desc != nullptr, NotFound, "variable {} is not in the program", name);
    return *desc;
  }

  // The variable that `name` means to a node of this replica. Parameters and optimizer state exist once, and what
  // update ops computed is found where it was computed.
  int var_of(const std::string& name, int replica, bool update) {
    if (shared_.count(name)) return graph_.var(name, 0, describe(name));
    if (update) {
      if (auto it = home_.find(name); it != home_.end()) replica = it->second;
    }
    return graph_.var(name, replica, describe(name));
  }

  std::vector<int> flatten(const std::vector<ir::Slot>& slots, int replica, bool update) {
    std::vector<int> ids;
    for (const auto& s : slots) {
      for (const auto& a : s.args) ids.push_back(a == ir::kEmptyVar ? -1 : var_of(a, replica, update));
    }
    return ids;
  }

  GraphNode& add_node(int index, const ir::OpRef& op, int replica, bool update) {
    GraphNode node;
    node.op = op;
    node.index = index;
    node.replica = replica;
    node.ins = flatten(op->inputs, replica, update);
    if (update) {
      for (const auto& n : op->output_args()) {
        if (!shared_.count(n)) home_[n] = replica;
      }
    }
    node.outs = flatten(op->outputs, replica, update);
    for (int sub : op->sub_blocks()) {
      const OuterNames outer = outer_names(program_, sub);
      for (const auto& n : outer.reads) node.more_reads.push_back(var_of(n, replica, update));
      for (const auto& n : outer.writes) node.more_writes.push_back(var_of(n, replica, update));
    }
    if (find_op(op->type).has(kOrdered)) node.tokens.push_back(kOrderToken);
    return push(std::move(node));
  }

  GraphNode& push(GraphNode node) {
    for (int v : graph_.writes(node)) graph_.vars[v].produced = true;
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back();
  }

  // ---- collectives
  int owner_of(const ir::Op& op) {
    const auto pairs = op.role_vars();
    for (const auto& [param, grad] : pairs) {
      AB_CHECK(pairs.size() == 1 || op.type == "sum" || op.type == "sqrt", InvalidArgument,
               "optimizer op {} names {} parameters in op_role_var, expected one", op.type, pairs.size());
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
  void add_collective(int index, const ir::Op& op, const std::string& param, const std::string& grad) {
    const auto outs = op.output_args();
    if (std::find(outs.begin(), outs.end(), grad) == outs.end()) return;
    auto collective = std::make_shared<ir::Op>();
    collective->type = "all_reduce";
    collective->made_at = op.made_at;
    collective->attrs["op_role"] = int32_t{ir::role::kBackward};
    collective->attrs["op_role_var"] = std::vector<std::string>{param, grad};
    collective->attrs["groups"] = int32_t{1};
    GraphNode node;
    node.index = index;
    const int owner = least_loaded(grad);
    home_[grad] = owner;
    const bool everywhere = options_.build.reduce_strategy == ReduceMode::kAllReduce && seen_.count(grad) != 0;
    for (int r = 0; r < options_.active; ++r) node.ins.push_back(graph_.var(grad, r, describe(grad)));
    for (int r = 0; r < options_.replicas; ++r) {
      if (everywhere || r == owner) node.outs.push_back(graph_.var(grad, r, describe(grad)));
    }
    node.replica = owner;
    collective->inputs = {{"X", std::vector<std::string>(node.ins.size(), grad)}};
    collective->outputs = {{"Out", std::vector<std::string>(node.outs.size(), grad)}};
    node.op = collective;
    push(std::move(node));
  }

  // ---- the loss gradient
  void add_seed(int index, const ir::OpRef& op) {
    const auto scale = options_.build.gradient_scale_strategy;
    if (scale == GradientScale::kCustomized) {
      for (int r = 0; r < options_.replicas; ++r)
        graph_.var(op->output("Out").at(0), r, describe(op->output("Out")[0]));
      return;  // the user feeds it
    }
    const bool weighted_here = branches_.size() == 1 && branches_[0].var == options_.loss_name;
    const float even = 1.0f / static_cast<float>(options_.exact_fluid ? options_.replicas : options_.active);
    for (int r = 0; r < options_.active; ++r) {
      if (weighted_here && !branches_[0].counted.empty()) {
        push_weight(index, *op, branches_[0], r, false);
        continue;
      }
      auto seed = std::make_shared<ir::Op>(*op);
      const bool one = scale == GradientScale::kOne || (!branches_.empty() && !weighted_here);
      seed->attrs["value"] = one ? 1.0f : even;
      seed->attrs["str_value"] = std::string();
      add_node(index, seed, r, false);
    }
  }

  void weight_branches(int index) {
    if (branches_.size() == 1 && branches_[0].var == options_.loss_name) return;  // the seed has the weight
    for (const auto& b : branches_) {
      const std::string grad = ir::grad_name(b.var);
      if (last_grad_op_.at(grad) != index) continue;
      for (int r = 0; r < options_.active; ++r) push_weight(index, *block_.ops()[index], b, r, true);
    }
  }

  void push_weight(int index, const ir::Op& near, const LossBranch& branch, int replica, bool in_place) {
    const std::string grad = ir::grad_name(branch.var);
    auto op = std::make_shared<ir::Op>();
    op->type = "replica_weight";
    op->made_at = near.made_at;
    op->attrs["op_role"] = int32_t{ir::role::kBackward | ir::role::kLoss};
    op->attrs["replica"] = int32_t{replica};
    op->attrs["active"] = int32_t{options_.active};
    op->attrs["dtype"] = static_cast<int32_t>(describe(grad).dtype);
    GraphNode node;
    node.index = index;
    node.replica = replica;
    if (!branch.counted.empty()) {
      for (int r = 0; r < options_.active; ++r) {
        node.only_shapes.push_back(graph_.var(branch.counted, r, describe(branch.counted)));
      }
    }
    node.ins = node.only_shapes;
    op->inputs = {{"Counted", std::vector<std::string>(node.ins.size(), branch.counted)}, {"X", {}}};
    const int var = graph_.var(grad, replica, describe(grad));
    if (in_place) {
      op->inputs[1].args = {grad};
      node.ins.push_back(var);
    }
    op->outputs = {{"Out", {grad}}};
    node.outs = {var};
    node.op = op;
    push(std::move(node));
  }

  // ---- the whole graph
  // What is fed or fetched may be used by no op.
  void mention(const std::string& name) {
    const auto desc = block_.find_var_recursive(name);
    if (!desc || !(desc->persistable || options_.fed.count(name))) return;  // the caller reports what is missing
    for (int r = 0; r < options_.replicas; ++r) {
      if (graph_.find(name, r) < 0 && !(r > 0 && shared_.count(name))) graph_.var(name, r, *desc);
    }
  }

  void mark_dynamic() {
    for (const GraphNode& node : graph_.nodes) {
      bool dynamic = find_op(node.op->type).is_dynamic(*node.op);
      for (int v : graph_.reads(node)) dynamic |= graph_.vars[v].dynamic;
      for (int v : graph_.writes(node)) graph_.vars[v].dynamic |= dynamic && !graph_.vars[v].desc.persistable;
    }
    for (GraphNode& node : graph_.nodes) {  // a count that is known only at run time has to be waited for
      std::erase_if(node.only_shapes, [&](int v) { return graph_.vars[v].dynamic; });
    }
  }

  const ir::Program& program_;
  const ir::Block& block_;
  const ReplicateOptions& options_;
  Graph graph_;
  bool parallel_ = false, training_ = false;
  std::set<std::string> shared_, batch_dependent_;
  std::set<std::string> seen_;       // gradients that are fetched, or read by other ops than updates
  std::map<std::string, int> home_;  // replica on which an update op's result, or a reduced gradient, is
  std::vector<int64_t> owned_elems_;
  std::vector<LossBranch> branches_;
  std::map<std::string, int> last_grad_op_;
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
