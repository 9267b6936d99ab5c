// fuse_embeddings: the lookups of many slots and their concatenation become one op, so that the time depends on the
// number of ids and not of slots; likewise their gradients, and the update of the table, which then needs no
// intermediate sparse gradient. Rows that are only multiplied with another row are read where they are in the table. A
// gradient that is fetched, clipped, regularized or summed over replicas is still computed. Results are gathered from
// the same table rows, and gradients of a row are added in the same order: the bits are those of the single ops.
#include <algorithm>
#include <map>

#include "graph/passes/passes.h"
#include "graph/passes/patterns/embedding_chains.h"

namespace anabranch {
namespace {

using namespace embeddings;

class EmbeddingFuser {
 public:
  explicit EmbeddingFuser(Graph& graph) : graph_(graph), edit_(graph), tables_(find_table_grads(graph, edit_.uses)) {}

  int run() {
    for (TableGrad& t : tables_) choose(t);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op->type == "concat") fuse_concat(static_cast<int>(i));
    }
    for (const auto& [node, parts] : cut_) rewrite_concat_grad(node, parts);
    for (const TableGrad& t : tables_) {
      if (t.node >= 0) fuse_table(t);
    }
    for (const RowProduct& p : products_) fuse_product(p);
    for (int at : removed_) edit_.remove(at);
    for (auto& [at, node] : made_) edit_.put(at, std::move(node));
    edit_.commit();
    return changes_;
  }

 private:
  // ---- gradients
  // The update op that is the only reader of a table's gradient, if it can be fused; -1: none.
  int update_of(const TableGrad& t) const {
    const int at = edit_.uses.is_inner(t.var) ? edit_.uses.reader(t.var) : -1;
    if (at < 0) return -1;
    const GraphNode& node = graph_.nodes[at];
    const std::string& type = node.op->type;
    const bool lazy = type == "adam" && node.op->attr<bool>("lazy_mode");
    if (!(lazy || type == "sgd" || type == "adagrad") || input_var(node, "Grad") != t.var) return -1;
    const bool own = input_var(node, "Param") == t.table && output_var(node, "ParamOut") == t.table;
    return own && edit_.uses.writer(t.table) == at ? at : -1;
  }

  // A table with one lookup, nothing to skip on the way back and no update to fuse stays unchanged.
  void choose(TableGrad& t) {
    const Source& first = t.sources[0];
    const bool shorter = t.sources.size() > 1 || !first.nodes.empty() || first.concat_grad >= 0 || first.product;
    if (!shorter && update_of(t) < 0) {
      t.node = -1;
      return;
    }
    for (const Source& s : t.sources) {
      removed_.insert(s.nodes.begin(), s.nodes.end());
      removed_.insert(s.lookup_grad);
      read_.insert({s.ids, s.grad});
      if (s.concat_grad >= 0) cut_[s.concat_grad].insert(s.part);
      if (s.product) products_.push_back(*s.product);
    }
    removed_.insert(t.node);
  }

  void fuse_table(const TableGrad& t) {
    std::vector<int> ids, grads, factors;
    std::vector<int32_t> factor;
    std::vector<int64_t> padding;
    std::vector<int32_t> column, columns, per_row, pool;
    for (const Source& s : t.sources) {
      ids.push_back(s.ids);
      grads.push_back(s.grad);
      padding.push_back(s.padding);
      column.push_back(s.column);
      columns.push_back(s.columns);
      per_row.push_back(s.per_row);
      pool.push_back(static_cast<int32_t>(s.pool));
      factor.push_back(s.product ? static_cast<int32_t>(factors.size()) : -1);
      if (s.product) factors.push_back(s.product->dout);
    }
    const int update = update_of(t), at = update < 0 ? t.node : update;
    NodeBuilder builder = update < 0 ? make(at, "fused_embedding_grad") : make(at, "fused_embedding_update");
    if (update < 0) {
      builder.in("W", t.table).out("W@GRAD", t.var);
    } else {
      add_update(graph_.nodes[at], &builder);
    }
    builder.in("Ids", ids).in("Grad", grads).in("Factor", factors).attr("factor", factor);
    builder.attr("padding_idx", padding).attr("column", column).attr("columns", columns);
    builder.attr("per_row", per_row).attr("pool", pool);
    GraphNode node = builder.done();
    for (const Source& s : t.sources) add_part(s.lookup_grad, &node);
    add_part(at, &node);
    put(at, std::move(node));
    ++changes_;
  }

  // The slots and attributes of the update rule, which the fused op has as lists.
  static void add_update(const GraphNode& old, NodeBuilder* builder) {
    const auto all = [&](std::initializer_list<const char*> slots, const char* in, const char* out) {
      std::vector<int> ins, outs;
      for (const char* slot : slots) {
        if (input_var(old, slot) < 0) continue;
        ins.push_back(input_var(old, slot));
        outs.push_back(output_var(old, std::string(slot) + "Out"));
      }
      builder->in(in, ins).out(out, outs);
    };
    builder->in("Param", input_var(old, "Param")).out("ParamOut", output_var(old, "ParamOut"));
    builder->in("LearningRate", input_var(old, "LearningRate"));
    all({"Moment", "Moment1", "Moment2"}, "State", "StateOut");
    all({"Beta1Pow", "Beta2Pow"}, "Power", "PowerOut");
    for (const char* slot : {"Beta1Tensor", "Beta2Tensor"}) builder->in(slot, input_var(old, slot));
    builder->attr("rule", old.op->type).copy({"beta1", "beta2", "epsilon"});
  }

  // The gradient of the rows is no longer computed, and the rows are read where they are.
  void fuse_product(const RowProduct& p) {
    ++changes_;
    if (p.matmul >= 0) {
      const GraphNode& lookup = graph_.nodes[p.lookup];
      const auto rows_of = [&](NodeBuilder builder) {
        return builder.in("W", p.table).in("Ids", p.ids).attr("padding_idx", lookup.op->attr<int64_t>("padding_idx"));
      };
      put(p.matmul, with_parts(rows_of(make(p.matmul, "fused_embedding_dot"))
                                   .in("X", p.x)
                                   .out("Out", output_var(graph_.nodes[p.matmul], "Out"))
                                   .done(),
                               {p.lookup, p.matmul}));
      if (p.dx >= 0) {
        put(p.grad,
            with_parts(rows_of(make(p.grad, "fused_embedding_combine")).in("Factor", p.dout).out("Out", p.dx).done(),
                       {p.grad}));
      }
      removed_.insert(p.lookup);
    } else if (p.dx >= 0) {
      NodeBuilder builder(graph_, "matmul_grad", graph_.nodes[p.grad]);
      builder.copy_all().in("X", p.x).in("Y", input_var(graph_.nodes[p.grad], "Y")).in("Out@GRAD", p.dout);
      put(p.grad, builder.out("X@GRAD", p.dx).done());
    }
    if (p.dx < 0) removed_.insert(p.grad);
  }

  // Parts of a concat's gradient without readers are no longer cut out.
  void rewrite_concat_grad(int at, const std::set<int>& absorbed) {
    const GraphNode& old = graph_.nodes[at];
    const auto found = find_columns(graph_, old);
    if (!found) return;
    const Columns& columns = *found;
    std::vector<int> xs, dxs;
    std::vector<int32_t> column;
    for (int i = 0; i < static_cast<int>(old.outs.size()); ++i) {
      if (old.outs[i] < 0 || absorbed.count(i)) continue;
      xs.push_back(columns.parts[i]);
      dxs.push_back(old.outs[i]);
      column.push_back(columns.starts[i]);
    }
    if (xs.empty()) {
      removed_.insert(at);
      return;
    }
    NodeBuilder builder = make(at, "concat_grad_parts");
    builder.in("X", xs).in("Out@GRAD", input_var(old, "Out@GRAD")).out("X@GRAD", dxs).attr("column", column);
    put(at, builder.done());
  }

  // ---- lookups
  // After the pass, the lookup's nodes have no readers left except `concat` and its gradient.
  bool can_go(const Lookup& lookup, int part, int concat, int grad) const {
    const int made = input_vars(graph_.nodes[concat], "X")[static_cast<size_t>(part)];
    for (int v : lookup.vars) {
      if (read_.count(v)) return false;
      for (int reader : edit_.uses.readers(v)) {
        const bool inner = std::count(lookup.nodes.begin(), lookup.nodes.end(), reader) != 0;
        const auto& ins = graph_.nodes[reader].ins;
        const bool as_part =
            (reader == concat || reader == grad) && v == made && std::count(ins.begin(), ins.end(), v) == 1;
        if (!inner && !as_part && !removed_.count(reader)) return false;
      }
    }
    if (grad < 0) return true;
    const auto cut = cut_.find(grad);
    return graph_.nodes[grad].outs[part] < 0 || (cut != cut_.end() && cut->second.count(part) != 0);
  }

  // The concat_grad of a concat: the one with the same parts.
  int grad_of(int concat, const Columns& columns) const {
    for (int reader : edit_.uses.readers(columns.parts[0])) {
      const GraphNode& node = graph_.nodes[reader];
      if (reader == concat || node.op->type != "concat_grad" || node.replica != graph_.nodes[concat].replica) continue;
      const auto other = find_columns(graph_, node);
      if (other && other->parts == columns.parts) return reader;
    }
    return -1;
  }

  bool written_between(int var, int from, int to) const {
    const auto& w = edit_.uses.writers(var);
    return std::any_of(w.begin(), w.end(), [&](int at) { return at > from && at < to; });
  }

  void fuse_concat(int at) {
    const auto columns = find_columns(graph_, graph_.nodes[at]);
    if (!columns) return;
    const int grad = grad_of(at, *columns);
    std::vector<std::optional<Lookup>> lookups;
    for (size_t i = 0; i < columns->parts.size(); ++i) {
      auto found = find_lookup(graph_, edit_.uses, columns->parts[i]);
      if (found) {
        const int64_t width = graph_.vars[found->table].desc.shape[1];
        const bool fits = found->pool == Pool::kNone ? columns->widths[i] % width == 0 : columns->widths[i] == width;
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
    if (grad >= 0) cut_[grad];  // it must not read the shapes of removed parts
    for (const auto& l : lookups) {
      if (!l) continue;
      removed_.insert(l->nodes.begin(), l->nodes.end());
      read_.insert(l->ids);
    }
    put(at, make_concat(at, *columns, lookups));
    ++changes_;
  }

  GraphNode make_concat(int at, const Columns& columns, const std::vector<std::optional<Lookup>>& lookups) const {
    std::vector<int> tables, ids, xs;
    std::vector<int32_t> table, pool, source, ids_rank, last_is_one;
    std::vector<int64_t> padding, ids_a_row;
    std::vector<float> empty;
    for (size_t i = 0; i < lookups.size(); ++i) {
      const auto& found = lookups[i];
      if (!found) {
        source.push_back(-1 - static_cast<int32_t>(xs.size()));
        xs.push_back(columns.parts[i]);
        continue;
      }
      const Lookup& l = *found;
      source.push_back(static_cast<int32_t>(ids.size()));
      ids.push_back(l.ids);
      auto known = std::find(tables.begin(), tables.end(), l.table);
      table.push_back(static_cast<int32_t>(known - tables.begin()));
      if (known == tables.end()) tables.push_back(l.table);
      pool.push_back(static_cast<int32_t>(l.pool));
      padding.push_back(l.padding);
      empty.push_back(l.empty);
      const Shape& declared = graph_.vars[l.ids].desc.shape;
      ids_rank.push_back(declared.rank());
      ids_a_row.push_back(declared.numel(1, declared.rank()));
      last_is_one.push_back(l.last_is_one);
    }
    NodeBuilder builder = make(at, "fused_embedding_concat");
    builder.in("W", tables).in("Ids", ids).in("X", xs).out("Out", graph_.nodes[at].outs[0]);
    builder.attr("table", table).attr("padding_idx", padding).attr("pool", pool).attr("pad_value", empty);
    builder.attr("source", source).attr("width", std::vector<int32_t>(columns.widths.begin(), columns.widths.end()));
    builder.attr("ids_rank", ids_rank).attr("ids_a_row", ids_a_row).attr("last_is_one", last_is_one);
    GraphNode node = builder.done();
    for (const auto& l : lookups) {
      if (l) add_part(l->nodes.back(), &node);
    }
    add_part(at, &node);
    return node;
  }

  // ---- the graph
  NodeBuilder make(int at, const char* type) const {
    NodeBuilder builder(graph_, type, graph_.nodes[at]);
    builder.copy({"op_role_var"});
    return builder;
  }

  void put(int at, GraphNode node) {
    node.tokens = graph_.nodes[at].tokens;
    made_[at] = std::move(node);
  }

  GraphNode with_parts(GraphNode node, std::initializer_list<int> parts) const {
    for (const int at : parts) add_part(at, &node);
    return node;
  }

  // For messages: the op, with its position in the program and the user's line.
  void add_part(int at, GraphNode* node) const {
    const GraphNode& part = graph_.nodes[at];
    const bool known = !node->parts.empty() && node->parts.back().op == part.op;
    if (!known) node->parts.push_back({part.index, part.op});
  }

  Graph& graph_;
  GraphEdit edit_;
  std::vector<TableGrad> tables_;
  std::map<int, std::set<int>> cut_;  // concat_grads, and the parts that are no longer cut out
  std::vector<RowProduct> products_;  // whose gradients of rows are no longer computed
  std::set<int> removed_;             // nodes, unless they are replaced
  std::set<int> read_;                // variables that fused nodes read
  std::map<int, GraphNode> made_;     // replacement of a node
  int changes_ = 0;
};

int fuse_embeddings(Graph& graph, const PassContext&) { return EmbeddingFuser(graph).run(); }

}  // namespace

const Pass kFuseEmbeddings = {.name = "fuse_embeddings",
                              .what = "fuses the lookups of many slots, and their gradients",
                              .tolerance = "bit-equal",
                              .on_devices = true,
                              .run = fuse_embeddings};

}  // namespace anabranch
