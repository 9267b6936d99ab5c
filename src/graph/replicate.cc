#include "graph/replicate.h"

#include <algorithm>
#include <optional>

#include "graph/edit.h"
#include "graph/replica_gradients.h"
#include "graph/replica_nodes.h"
#include "ir/interface.h"
#include "ir/outer_names.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

// Every replica may be fed a different value.
std::set<std::string> shared_names(const ir::Program& program, const ReplicateOptions& options) {
  std::set<std::string> shared;
  if (options.data_parallel && options.replicas > 1 && !options.apart) {
    shared = shared_persistables(program, options.independent);
  }
  for (const auto& name : options.fed) shared.erase(name);
  return shared;
}

class Replicator {
 public:
  Replicator(const ir::Program& program, const ReplicateOptions& options)
      : program_(program),
        block_(program.global_block()),
        options_(options),
        parallel_(options.data_parallel && options.replicas > 1),
        outer_names_(program),
        ownership_(options.replicas, shared_names(program, options)),
        nodes_(program, outer_names_, ownership_, graph_),
        batch_dependent_(options.fed) {
    graph_.replicas = options.replicas;
    if (parallel_) find_looked_at();
    const bool in_step = options.trainer && options.trainer->in_step && !options.exact_fluid;
    const bool together = (parallel_ && !options.independent) || (options.data_parallel && options.trainers > 1);
    if ((together && !options.loss_name.empty()) || in_step) {
      training_.emplace(block_, options_, looked_at_, ownership_, graph_, nodes_);
    }
  }

  Graph build() {
    for (const auto& name : options_.fed) mention(name, /*fed=*/true);
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      const ir::OpRef& op = block_.ops()[i];
      if (!is_done_outside(*op)) add(static_cast<int>(i), after_barrier(of_trainer(checked_copy(*op))));
    }
    nodes_.keep_last_versions();
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
  void find_looked_at() {
    looked_at_ = options_.fetched;
    for (const auto& op : block_.ops()) {
      if (is_update(*op) || is_exchange(*op)) continue;
      for (const auto& n : op->input_args()) looked_at_.insert(n);
      for (int sub : op->sub_blocks()) {
        for (const auto& n : outer_names_.of(sub).reads) looked_at_.insert(n);
      }
    }
  }

  // The caller of the run serves feeds, fetches and readers: a read whose variables are fed is done.
  bool is_done_outside(const ir::Op& op) const {
    if (ir::is_interface(op)) return true;
    const OpDef* def = find_op_or_null(op.type);
    const auto outs = def && def->is(kServed) ? op.output_args() : std::vector<std::string>{};
    return !outs.empty() && std::all_of(outs.begin(), outs.end(), [&](const auto& n) {
      return options_.fed.count(n) != 0 || nodes_.describe(n).kind == VarKind::kReader;
    });
  }

  // Programs of Fluid do not record whose gradients an op sends.
  ir::OpRef of_trainer(const ir::OpRef& op) const {
    const OpDef* def = find_op_or_null(op->type);
    if (!options_.trainer || !def || !def->is(kSends)) return op;
    auto named = std::make_shared<ir::Op>(*op);
    named->attrs["trainer_id"] = int32_t{options_.trainer->number};
    return named;
  }

  // A step receives what it has sent: after the barrier at its end, also where programs of Fluid do not say so.
  ir::OpRef after_barrier(const ir::OpRef& op) {
    const OpDef* def = find_op_or_null(op->type);
    if (!def || !is_exchange(*op)) return op;
    if (def->is(kEndsStep)) barrier_ = op->output_args();
    const bool in_step = def->is(kReceives) && !op->input_args().empty();
    if (!in_step || barrier_.empty() || op->inputs.empty()) return op;
    auto later = std::make_shared<ir::Op>(*op);
    auto& args = later->inputs[0].args;
    for (const auto& name : barrier_) {
      if (std::find(args.begin(), args.end(), name) == args.end()) args.push_back(name);
    }
    return later;
  }

  void add(int index, const ir::OpRef& op) {
    if (training_ && is_loss_seed(*op)) {
      training_->add_seed(index, op);
      return;
    }
    check_parallel(*op);
    const OpDef* def = find_op_or_null(op->type);
    if (parallel_ && def && def->is(kForAllReplicas)) return add_for_all(index, op, /*results=*/true);
    if (options_.independent && receives_for_all(*op)) return add_for_all(index, op, /*results=*/false);
    if (parallel_ && !options_.independent && runs_once(*op)) {
      const int owner = ownership_.owner_of(*op);
      nodes_.add(index, op, owner, true);
      options_.apart ? broadcast_from_owner(*op, owner) : copy_from_owner(*op, owner);
      return;
    }
    const bool skips_idle = note_batch_dependence(*op) && (options_.independent || !is_update(*op));
    for (int r = 0; r < (skips_idle ? options_.active : options_.replicas); ++r) nodes_.add(index, op, r, false);
    if (training_) training_->add_after(index, op);
  }

  bool runs_once(const ir::Op& op) const { return is_exchange(op) || (is_update(op) && !updates_everywhere()); }

  // Replicas that train independently send their own gradients, but share what is received. Whether the op is part of
  // that: a barrier, a receive, or an op that joins what was received.
  bool receives_for_all(const ir::Op& op) {
    if (!is_exchange(op)) return false;
    const OpDef& def = find_op(op.type);
    const auto ins = op.input_args();
    const bool receives = def.is(kReceives) || def.is(kEndsStep) ||
                          std::any_of(ins.begin(), ins.end(), [&](const auto& n) { return received_.count(n) != 0; });
    if (receives) {
      for (const auto& n : op.output_args()) received_.insert(n);
    }
    return receives;
  }

  // One node for all replicas. Lists have the arguments of each replica with rows; `results`: outputs, too.
  void add_for_all(int index, const ir::OpRef& op, bool results) {
    note_batch_dependence(*op);
    const OpDef& def = find_op(op->type);
    NodeBuilder node(graph_, op->type, op, index, 0);
    node.copy_all();
    const auto args = [&](const ir::Slot& slot, bool each, bool written) {
      std::vector<int> vars;
      for (int r = 0; r < (each ? options_.active : 1); ++r) {
        for (const auto& name : slot.args) {
          if (r > 0 && (received_.count(name) || ownership_.is_shared(name))) continue;
          vars.push_back(written ? nodes_.write(def, name, r) : nodes_.read(name, r));
        }
      }
      return vars;
    };
    for (const ir::Slot& slot : op->inputs) node.in(slot.name, args(slot, def.find_input(slot.name)->list, false));
    for (const ir::Slot& slot : op->outputs) node.out(slot.name, args(slot, results, true));
    nodes_.push(node.done());
  }

  bool updates_everywhere() const { return options_.apart && options_.build.reduce_strategy == ReduceMode::kAllReduce; }

  // Results of an owner's updates on its device: parameters for all replicas, their state for the scope, which belongs
  // to the first replica.
  void broadcast_from_owner(const ir::Op& update, int owner) {
    std::set<std::string> parameters;
    for (const auto& pair : update.role_vars()) parameters.insert(pair.first);
    GraphNode near;
    near.op = graph_.nodes.back().op;
    for (const auto& name : update.output_args()) {
      const ir::Var& desc = nodes_.describe(name);
      if (!desc.persistable) continue;
      const int updated = nodes_.var(name, owner);
      if (parameters.count(name) && desc.kind == VarKind::kLoDTensor) {
        std::vector<int> all;
        for (int r = 0; r < options_.replicas; ++r) all.push_back(nodes_.var(name, r));
        push_broadcast(near, updated, all);
      } else if (owner != 0) {
        nodes_.push(
            NodeBuilder(graph_, "copy_between_places", near).in("X", updated).out("Out", nodes_.var(name, 0)).done());
      }
    }
  }

  // A parameter that other ops write, too, exists on every replica, and one update is for all of them.
  void copy_from_owner(const ir::Op& update, int owner) {
    const auto outs = update.output_args();
    GraphNode near;
    near.op = graph_.nodes.back().op;
    for (const auto& name : std::set<std::string>(outs.begin(), outs.end())) {
      if (is_discarded(name) || !nodes_.describe(name).persistable || ownership_.is_shared(name)) continue;
      std::vector<int> all;
      const int updated = nodes_.read(name, owner);
      for (int r = 0; r < options_.replicas; ++r) all.push_back(r == owner ? updated : nodes_.write_again(name, r));
      push_broadcast(near, updated, all);
    }
  }

  void push_broadcast(const GraphNode& near, int from, const std::vector<int>& to) {
    NodeBuilder node(graph_, "broadcast_from_owner", near);
    node.attr("op_role_var", std::vector<std::string>());
    nodes_.push(node.in("X", from).out("Out", to).done());
  }

  void check_sends(const ir::Op& op) const {
    const OpDef* def = find_op_or_null(op.type);
    AB_CHECK(!options_.apart || !def || !def->is(kSends), Unsupported,
             "op {} sends to servers: a worker whose replicas are on devices has one replica, got {}", op.type,
             options_.replicas);
  }

  // An update with blocks that write nothing but persistable variables runs once on the shared ones, or for each
  // replica on its own.
  bool updates_all_copies(const ir::Op& op) const {
    const auto outs = op.output_args();
    return is_update(op) && !options_.independent && (!options_.apart || updates_everywhere()) &&
           std::all_of(outs.begin(), outs.end(), [&](const auto& n) {
             const ir::Var& desc = nodes_.describe(n);
             return desc.persistable || desc.kind != VarKind::kLoDTensor;
           });
  }

  void check_parallel(const ir::Op& op) const {
    if (!parallel_) return;
    check_sends(op);
    if (updates_all_copies(op)) return;
    for (int sub : op.sub_blocks()) {
      for (const auto& inner : program_.block(sub).ops()) {
        AB_CHECK(!is_update(*inner), Unsupported,
                 "op {} updates a parameter inside a control-flow block: this works on one replica, not on {}",
                 inner->type, options_.replicas);
      }
    }
  }

  // True if the op works on rows of the batch (or is part of the backward pass), so that a replica without rows can
  // skip it.
  bool note_batch_dependence(const ir::Op& op) {
    const auto ins = op.input_args();
    bool depends = (op.role() & ir::role::kBackward) != 0 && training_;
    depends |= (op.role() & ir::role::kBackward) != 0 && options_.independent;
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

  // A fed or fetched variable may be used by no op.
  void mention(const std::string& name, bool fed) {
    const auto desc = block_.find_var_recursive(name);
    if (!desc || !(desc->persistable || options_.fed.count(name))) return;  // the caller reports missing variables
    for (int r = 0; r < options_.replicas; ++r) {
      if (graph_.find(name, r) < 0 && !(r > 0 && ownership_.is_shared(name))) graph_.var(name, r, *desc);
      if (fed) nodes_.has_value(graph_.find(name, r));
    }
  }

  // A count that is known only at run time must be waited for.
  void drop_unknown_counts() {
    for (GraphNode& node : graph_.nodes) {
      std::erase_if(node.only_shapes, [&](int v) { return graph_.vars[v].dynamic; });
    }
  }

  const ir::Program& program_;
  const ir::Block& block_;
  const ReplicateOptions& options_;
  const bool parallel_;
  OuterNamesOf outer_names_;
  Ownership ownership_;
  Graph graph_;
  ReplicaNodes nodes_;
  std::optional<ReplicaGradients> training_;  // none if replicas do not train together
  std::set<std::string> batch_dependent_, looked_at_;
  std::set<std::string> received_;    // by independent replicas
  std::vector<std::string> barrier_;  // outputs of the barrier that ends the step
};

}  // namespace

Graph replicate(const ir::Program& program, const ReplicateOptions& options) {
  return Replicator(program, options).build();
}

}  // namespace anabranch
