// fuse_embeddings: the look-ups of many slots and their concatenation become one op, so that time follows ids and not
// slots; likewise their gradients, and the update of the table, which then needs no sparse gradient in between. A
// gradient that is fetched, clipped, regularized or summed over replicas is still made. Rows of a result are gathered
// from the same table rows, gradients of a row are added in the same order: the bits are those of the single ops.
#include <algorithm>
#include <map>

#include "graph/passes/embedding_chains.h"
#include "graph/passes/passes.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

using namespace embeddings;

struct SlotVars {
  std::string name;
  std::vector<int> vars;
};

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), uses_(graph), tables_(find_table_grads(graph, uses_)) {}

  int run() {
    for (TableGrad& t : tables_) choose(t);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op->type == "concat") fuse_concat(static_cast<int>(i));
    }
    for (const auto& [node, parts] : cut_) rewrite_concat_grad(node, parts);
    for (const TableGrad& t : tables_) {
      if (t.node >= 0) fuse_table(t);
    }
    apply();
    return changes_;
  }

 private:
  // ---- gradients
  // The update op that is the only reader of a table's gradient, when it can take its place; -1: none.
  int update_of(const TableGrad& t) const {
    if (!uses_.is_private(t.var) || uses_.readers(t.var).size() != 1) return -1;
    const int at = uses_.readers(t.var)[0];
    const GraphNode& node = graph_.nodes[at];
    const std::string& type = node.op->type;
    const bool lazy = type == "adam" && node.op->attr<bool>("lazy_mode");
    if (!(lazy || type == "sgd" || type == "adagrad") || in_var(node, "Grad") != t.var) return -1;
    const bool own = in_var(node, "Param") == t.table && out_var(node, "ParamOut") == t.table;
    return own && uses_.writer(t.table) == at ? at : -1;
  }

  // A table with one look-up, nothing to skip on the way back and no update to take over stays as it is.
  void choose(TableGrad& t) {
    const bool shorter = t.sources.size() > 1 || !t.sources[0].nodes.empty() || t.sources[0].concat_grad >= 0;
    if (!shorter && update_of(t) < 0) {
      t.node = -1;
      return;
    }
    for (const Source& s : t.sources) {
      removed_.insert(s.nodes.begin(), s.nodes.end());
      removed_.insert(s.lookup_grad);
      if (s.concat_grad >= 0) cut_[s.concat_grad].insert(s.part);
    }
    removed_.insert(t.node);
  }

  void fuse_table(const TableGrad& t) {
    SlotVars ids{"Ids", {}}, grads{"Grad", {}};
    std::vector<int64_t> padding;
    std::vector<int32_t> column, per_row, pool;
    for (const Source& s : t.sources) {
      ids.vars.push_back(s.ids);
      grads.vars.push_back(s.grad);
      padding.push_back(s.padding);
      column.push_back(s.column);
      per_row.push_back(s.per_row);
      pool.push_back(s.pool);
    }
    const int update = update_of(t);
    GraphNode node;
    if (update >= 0) {
      node = make_update(update, ids, grads);
    } else {
      node = make_node(t.node, "fused_embedding_grad", {{"W", {t.table}}, ids, grads}, {{"W@GRAD", {t.var}}});
    }
    for (const Source& s : t.sources) add_part(s.lookup_grad, &node);
    add_part(update < 0 ? t.node : update, &node);
    auto& attrs = node.op->attrs;
    attrs["padding_idx"] = padding;
    attrs["column"] = column;
    attrs["per_row"] = per_row;
    attrs["pool"] = pool;
    replaced_[update < 0 ? t.node : update] = std::move(node);
    ++changes_;
  }

  GraphNode make_update(int at, const SlotVars& ids, const SlotVars& grads) const {
    const GraphNode& old = graph_.nodes[at];
    std::vector<SlotVars> ins = {{"Param", {in_var(old, "Param")}}, {"LearningRate", {in_var(old, "LearningRate")}}};
    std::vector<SlotVars> outs = {{"ParamOut", {out_var(old, "ParamOut")}}};
    SlotVars state{"State", {}}, power{"Power", {}}, state_out{"StateOut", {}}, power_out{"PowerOut", {}};
    for (const char* name : {"Moment", "Moment1", "Moment2"}) {
      if (in_var(old, name) < 0) continue;
      state.vars.push_back(in_var(old, name));
      state_out.vars.push_back(out_var(old, std::string(name) + "Out"));
    }
    for (const char* name : {"Beta1Pow", "Beta2Pow"}) {
      if (in_var(old, name) < 0) continue;
      power.vars.push_back(in_var(old, name));
      power_out.vars.push_back(out_var(old, std::string(name) + "Out"));
    }
    ins.insert(ins.end(), {state, power});
    for (const char* name : {"Beta1Tensor", "Beta2Tensor"}) {
      if (in_var(old, name) >= 0) ins.push_back({name, {in_var(old, name)}});
    }
    ins.insert(ins.end(), {ids, grads});
    outs.insert(outs.end(), {state_out, power_out});
    GraphNode node = make_node(at, "fused_embedding_update", ins, outs);
    node.op->attrs["rule"] = old.op->type;
    for (const char* name : {"beta1", "beta2", "epsilon"}) {
      if (old.op->has_attr(name)) node.op->attrs[name] = old.op->attr<float>(name);
    }
    return node;
  }

  // Parts of a concat's gradient that nobody needs any more are not cut out.
  void rewrite_concat_grad(int at, const std::set<int>& absorbed) {
    const GraphNode& old = graph_.nodes[at];
    const Columns columns = *find_columns(graph_, old);
    SlotVars xs{"X", {}}, dxs{"X@GRAD", {}};
    std::vector<int32_t> column;
    for (int i = 0; i < static_cast<int>(old.outs.size()); ++i) {
      if (old.outs[i] < 0 || absorbed.count(i)) continue;
      xs.vars.push_back(columns.parts[i]);
      dxs.vars.push_back(old.outs[i]);
      column.push_back(columns.begins[i]);
    }
    if (xs.vars.empty()) {
      removed_.insert(at);
      return;
    }
    GraphNode node = make_node(at, "concat_grad_parts", {xs, {"Out@GRAD", {in_var(old, "Out@GRAD")}}}, {dxs});
    node.op->attrs["column"] = column;
    replaced_[at] = std::move(node);
  }

  // ---- look-ups
  // Everybody who reads what the look-up's nodes make is gone after the pass, but for `concat` and its gradient.
  bool can_go(const Lookup& lookup, int part, int concat, int grad) const {
    for (int v : lookup.vars) {
      for (int reader : uses_.readers(v)) {
        const bool inner = std::count(lookup.nodes.begin(), lookup.nodes.end(), reader) != 0;
        if (!inner && reader != concat && reader != grad && !removed_.count(reader)) return false;
      }
    }
    if (grad < 0) return true;
    const auto cut = cut_.find(grad);
    return graph_.nodes[grad].outs[part] < 0 || (cut != cut_.end() && cut->second.count(part) != 0);
  }

  // The concat_grad of a concat: the one with the same parts.
  int grad_of(int concat, const Columns& columns) const {
    for (int reader : uses_.readers(columns.parts[0])) {
      const GraphNode& node = graph_.nodes[reader];
      if (reader == concat || node.op->type != "concat_grad" || node.replica != graph_.nodes[concat].replica) continue;
      const auto other = find_columns(graph_, node);
      if (other && other->parts == columns.parts) return reader;
    }
    return -1;
  }

  bool written_between(int var, int from, int to) const {
    const auto& w = uses_.writers(var);
    return std::any_of(w.begin(), w.end(), [&](int at) { return at > from && at < to; });
  }

  void fuse_concat(int at) {
    const auto columns = find_columns(graph_, graph_.nodes[at]);
    if (!columns) return;
    const int grad = grad_of(at, *columns);
    std::vector<std::optional<Lookup>> lookups;
    for (size_t i = 0; i < columns->parts.size(); ++i) {
      auto found = find_lookup(graph_, uses_, columns->parts[i]);
      if (found) {
        const int64_t width = graph_.vars[found->table].desc.shape[1];
        const bool fits = found->pool == kNotPooled ? columns->widths[i] % width == 0 : columns->widths[i] == width;
        if (!fits || written_between(found->table, found->nodes.back(), at) ||
            std::count(columns->parts.begin(), columns->parts.end(), columns->parts[i]) > 1 ||
            graph_.vars[found->table].desc.dtype != graph_.vars[graph_.nodes[at].outs[0]].desc.dtype ||
            !can_go(*found, static_cast<int>(i), at, grad)) {
          found.reset();
        }
      }
      lookups.push_back(std::move(found));
    }
    if (std::none_of(lookups.begin(), lookups.end(), [](const auto& l) { return l.has_value(); })) return;
    if (grad >= 0) cut_[grad];  // it must not ask for the shapes of parts that are gone
    for (const auto& l : lookups) {
      if (l) removed_.insert(l->nodes.begin(), l->nodes.end());
    }
    replaced_[at] = make_concat(at, *columns, lookups);
    ++changes_;
  }

  GraphNode make_concat(int at, const Columns& columns, const std::vector<std::optional<Lookup>>& lookups) const {
    SlotVars tables{"W", {}}, ids{"Ids", {}}, xs{"X", {}};
    std::vector<int32_t> table, pool, source;
    std::vector<int64_t> padding;
    std::vector<float> empty;
    for (size_t i = 0; i < lookups.size(); ++i) {
      if (!lookups[i]) {
        source.push_back(-1 - static_cast<int32_t>(xs.vars.size()));
        xs.vars.push_back(columns.parts[i]);
        continue;
      }
      const Lookup& l = *lookups[i];
      source.push_back(static_cast<int32_t>(ids.vars.size()));
      ids.vars.push_back(l.ids);
      auto known = std::find(tables.vars.begin(), tables.vars.end(), l.table);
      table.push_back(static_cast<int32_t>(known - tables.vars.begin()));
      if (known == tables.vars.end()) tables.vars.push_back(l.table);
      pool.push_back(l.pool);
      padding.push_back(l.padding);
      empty.push_back(l.empty);
    }
    GraphNode node = make_node(at, "fused_embedding_concat", {tables, ids, xs}, {{"Out", {graph_.nodes[at].outs[0]}}});
    for (const auto& l : lookups) {
      if (l) add_part(l->nodes.back(), &node);
    }
    add_part(at, &node);
    auto& attrs = node.op->attrs;
    attrs["table"] = table;
    attrs["padding_idx"] = padding;
    attrs["pool"] = pool;
    attrs["pad_value"] = empty;
    attrs["source"] = source;
    attrs["width"] = std::vector<int32_t>(columns.widths.begin(), columns.widths.end());
    return node;
  }

  // ---- the graph
  GraphNode make_node(int at, const char* type, const std::vector<SlotVars>& ins,
                      const std::vector<SlotVars>& outs) const {
    const GraphNode& old = graph_.nodes[at];
    GraphNode node;
    node.index = old.index;
    node.replica = old.replica;
    node.tokens = old.tokens;
    auto op = std::make_shared<ir::Op>();
    op->type = type;
    op->made_at = old.op->made_at;
    for (const char* name : {"op_role", "op_role_var"}) {
      if (old.op->has_attr(name)) op->attrs[name] = old.op->attrs.at(name);
    }
    const auto fill = [&](const std::vector<SlotVars>& slots, std::vector<ir::Slot>* to, std::vector<int>* vars) {
      for (const SlotVars& s : slots) {
        if (s.vars.empty()) continue;
        ir::Slot& slot = to->emplace_back();
        slot.name = s.name;
        for (int v : s.vars) {
          slot.args.push_back(v < 0 ? std::string(ir::kEmptyVar) : graph_.vars[v].name);
          vars->push_back(v);
        }
      }
    };
    fill(ins, &op->inputs, &node.ins);
    fill(outs, &op->outputs, &node.outs);
    node.op = std::move(op);
    return node;
  }

  // For messages: the op, with its place in the program and the user's line.
  void add_part(int at, GraphNode* node) const {
    const GraphNode& part = graph_.nodes[at];
    const bool known = !node->parts.empty() && node->parts.back().op == part.op;
    if (!known) node->parts.push_back({part.index, part.op});
  }

  void apply() {
    std::vector<GraphNode> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const int at = static_cast<int>(i);
      if (auto it = replaced_.find(at); it != replaced_.end()) {
        check_op(*it->second.op);  // attributes that were not set get their defaults
        nodes.push_back(std::move(it->second));
      } else if (!removed_.count(at)) {
        nodes.push_back(std::move(graph_.nodes[i]));
      }
    }
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  const Uses uses_;
  std::vector<TableGrad> tables_;
  std::map<int, std::set<int>> cut_;  // concat_grads, and the parts that are not cut out any more
  std::set<int> removed_;             // nodes, unless they are replaced
  std::map<int, GraphNode> replaced_;
  int changes_ = 0;
};

int run(Graph& graph, const PassContext&) { return Fuser(graph).run(); }

}  // namespace

const Pass kFuseEmbeddings = {"fuse_embeddings", "look-ups of many slots share a node, and so do their gradients",
                              "bit-equal", [](const PassContext&) -> const char* { return nullptr; }, run};

}  // namespace anabranch
