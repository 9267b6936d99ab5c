// Lookups of many slots, their pooling and their concatenation in one op, made by the pass fuse_embeddings.
#include <algorithm>
#include <memory>

#include "core/row_locks.h"
#include "ops/declare/checks.h"
#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"
#include "ops/sparse/queued_lookups.h"
#include "ops/sparse/queued_rows.h"
#include "ops/sparse/row_loops.h"

namespace anabranch::sparse::fused_embedding_op {
namespace {

constexpr int64_t kGrainElems = 16384;

// The attributes: per lookup, and per part of the result.
struct Plan {
  const std::vector<int32_t>&table, &pool, &source, &width;
  const std::vector<int64_t>& padding;
  const std::vector<float>& empty;
  template <class Op>
  explicit Plan(const Op& op)
      : table(op.template attr<std::vector<int32_t>>("table")),
        pool(op.template attr<std::vector<int32_t>>("pool")),
        source(op.template attr<std::vector<int32_t>>("source")),
        width(op.template attr<std::vector<int32_t>>("width")),
        padding(op.template attr<std::vector<int64_t>>("padding_idx")),
        empty(op.template attr<std::vector<float>>("pad_value")) {}
};

void check_plan(const InferContext& c, const Plan& p) {
  const auto lookups = static_cast<size_t>(c.n_in("Ids"));
  AB_CHECK(lookups > 0 && p.table.size() == lookups && p.pool.size() == lookups && p.padding.size() == lookups &&
               p.empty.size() == lookups && p.source.size() == p.width.size() &&
               p.source.size() == lookups + static_cast<size_t>(c.n_in("X")),
           InvalidArgument, "the lists of attributes must match {} Ids and {} X", lookups, c.n_in("X"));
  for (size_t k = 0; k < lookups; ++k) {
    AB_CHECK(p.table[k] >= 0 && p.table[k] < c.n_in("W") && p.pool[k] >= 0 && p.pool[k] <= 3, InvalidArgument,
             "lookup {} must have a valid table and pool, got table {} of {} and pool {}", k, p.table[k], c.n_in("W"),
             p.pool[k]);
    const DType ids = c.in("Ids", static_cast<int>(k)).dtype;
    AB_CHECK(ids == DType::kInt64 || ids == DType::kInt32, InvalidArgument, "Ids[{}] must hold int32 or int64, got {}",
             k, dtype_name(ids));
  }
  for (int i = 0; i < c.n_in("W"); ++i) {
    AB_CHECK(c.in("W", i).shape.rank() == 2 && c.in("W", i).shape[1] != 0 && c.in("W", i).dtype == c.in("W").dtype,
             InvalidArgument, "W[{}] must be a matrix with the dtype of W[0], got {} of {}", i,
             c.in("W", i).shape.str(), dtype_name(c.in("W", i).dtype));
  }
}

// Ids must have the form that the program declares; for another one the separate ops might compute something else.
// Empty lists, from a program without declarations, are not compared.
void check_ids(const InferContext& c) {
  const auto& rank = c.attr<std::vector<int32_t>>("ids_rank");
  const auto& last_is_one = c.attr<std::vector<int32_t>>("last_is_one");
  const auto& a_row = c.attr<std::vector<int64_t>>("ids_a_row");
  const auto n = static_cast<size_t>(c.n_in("Ids"));
  AB_CHECK(last_is_one.size() == rank.size() && a_row.size() == rank.size() && (rank.empty() || rank.size() == n),
           InvalidArgument, "ids_rank, ids_a_row and last_is_one must have one entry for each of the {} Ids", n);
  if (!c.runtime()) return;
  for (size_t k = 0; k < rank.size(); ++k) {
    const Shape& ids = c.in("Ids", static_cast<int>(k)).shape;
    const bool fits = ids.rank() == rank[k] && ids.rank() > 0 && (!last_is_one[k] || ids[ids.rank() - 1] == 1) &&
                      (a_row[k] < 0 || ids.numel(1, ids.rank()) == a_row[k]);
    AB_CHECK(fits, ShapeMismatch, "Ids[{}] must have {} axes and {} ids per row, got {}", k, rank[k], a_row[k],
             ids.str());
  }
}

// Each lookup and each X is one part.
void check_sources(const InferContext& c, const Plan& p) {
  std::vector<bool> seen(p.source.size());
  for (const int32_t from : p.source) {
    AB_CHECK(from < c.n_in("Ids") && -1 - from < c.n_in("X"), InvalidArgument,
             "source must name a lookup or an X, got {}", from);
    const int at = from >= 0 ? from : c.n_in("Ids") - 1 - from;
    AB_CHECK(!seen[static_cast<size_t>(at)], InvalidArgument, "source must name each lookup and X once, got {} twice",
             from);
    seen[static_cast<size_t>(at)] = true;
  }
}

// Rows of the result from part `i`; unknown while a program is built.
int64_t part_rows(const InferContext& c, const Plan& p, size_t i) {
  const int32_t from = p.source[i];
  AB_CHECK(p.width[i] > 0, InvalidArgument, "width of part {} must be above 0, got {}", i, p.width[i]);
  if (!c.runtime()) return kUnknown;
  if (from < 0) {
    const Meta& x = c.in("X", -1 - from);
    AB_CHECK(x.shape.rank() == 2 && x.shape[1] == p.width[i] && x.dtype == c.in("W").dtype, ShapeMismatch,
             "X[{0}] must have {3} columns of {4}, got {1} of {2}", -1 - from, x.shape.str(), dtype_name(x.dtype),
             p.width[i], dtype_name(c.in("W").dtype));
    return x.shape[0];
  }
  const Meta& ids = c.in("Ids", from);
  const int64_t width = c.in("W", p.table[from]).shape[1], numel = ids.shape.numel();
  if (p.pool[from] != 0) {
    AB_CHECK(p.width[i] == width, ShapeMismatch, "part {} must have the width of its table, got {} and {}", i,
             p.width[i], width);
    const auto& offsets = sequence::lod_of(c, "Ids", from).back();
    AB_CHECK(offsets.back() == numel, ShapeMismatch,
             "the LoD of Ids[{}] must end at its last row, got {} and LoD end {}", from, ids.shape.str(),
             offsets.back());
    return sequence::count(offsets);
  }
  const int64_t per_row = p.width[i] / width;
  AB_CHECK(per_row * width == p.width[i] && numel % per_row == 0, ShapeMismatch,
           "Ids[{}] must fill its part, got Ids {}, table width {}, and part {} of width {}", from, ids.shape.str(),
           width, i, p.width[i]);
  return numel / per_row;
}

// Like concat: the result takes the LoD of its first part.
void carry_lod(InferContext& c, const Plan& p, int64_t rows) {
  const int32_t from = p.source[0];
  if (from < 0) return c.share_lod("Out", "X", 0);
  const Meta& ids = c.in("Ids", from);
  if (!ids.lod) return;
  if (p.pool[from] != 0) {
    if (ids.lod->size() > 1)
      sequence::set_lod(c, "Out", std::make_shared<const LoD>(ids.lod->begin(), ids.lod->end() - 1));
  } else if (ids.shape[0] == rows) {
    sequence::set_lod(c, "Out", ids.lod);
  }
}

void infer(InferContext& c) {
  const Plan p(c);
  check_plan(c, p);
  check_sources(c, p);
  check_ids(c);
  int64_t rows = kUnknown, columns = 0;
  for (size_t i = 0; i < p.source.size(); ++i) {
    const int64_t have = part_rows(c, p, i);
    AB_CHECK(rows < 0 || have == rows, ShapeMismatch,
             "all parts must have the same number of rows, got part {} with {} rows and {} before", i, have, rows);
    rows = have;
    columns += p.width[i];
  }
  c.set_out("Out", Shape{rows, columns}, c.in("W").dtype);
  if (c.runtime()) carry_lod(c, p, rows);
}

template <class T> class GatherConcat {
 public:
  explicit GatherConcat(const KernelArgs& op)
      : w_(op.in("W")), ids_(op.in("Ids")), xs_(op.in("X")), out_(op.out("Out")), table_(Plan(op).table) {
    const Plan p(op);
    for (size_t k = 0; k < p.table.size(); ++k) {
      names_.push_back(
          {"lookup_table", op.op().input("Ids")[k], op.op().input("W").at(static_cast<size_t>(p.table[k]))});
    }
    lookup_.resize(p.table.size());
    for (size_t i = 0; i < p.source.size(); ++i) {
      if (p.source[i] >= 0) lookup_[p.source[i]] = i;
      GatherPart<T>& part = parts_.emplace_back();
      part.width = p.width[i];
      part.column = columns_;
      columns_ += p.width[i];
      if (p.source[i] < 0) {
        dense_.emplace_back(i, -1 - p.source[i]);
        continue;
      }
      part.pool = static_cast<Pool>(p.pool[p.source[i]]);
      part.padding = p.padding[p.source[i]];
      part.empty = static_cast<T>(p.empty[p.source[i]]);
    }
    scratch_.resize(p.table.size());
    zeros_.resize(static_cast<size_t>(*std::max_element(p.width.begin(), p.width.end())));
    part_width_ = p.width;
  }

  void operator()(KernelContext& c) {
    for (const auto& [part, x] : dense_) parts_[part].table = c.at(xs_, x).template data<T>();
    for (size_t k = 0; k < lookup_.size(); ++k) bind(c, k);
    T* out = c[out_].mutable_data<T>();
    const int64_t grain = std::max<int64_t>(1, kGrainElems / columns_), stride = columns_;
    const auto count = static_cast<int64_t>(parts_.size());
    c.parallel_for(c[out_].rows(), grain, [=, this](int64_t begin, int64_t end) {
      gather_parts(parts_.data(), count, begin, end, out, stride);
    });
  }

 private:
  void bind(KernelContext& c, size_t k) {
    GatherPart<T>& part = parts_[lookup_[k]];
    const Tensor &w = c.at(w_, table_[k]), &ids = c.at(ids_, static_cast<int>(k));
    part.table = w.data<T>();
    part.shared = RowLocks::shared();
    part.width = w.row_elems();
    part.per_row = part_width_[lookup_[k]] / part.width;
    part.ids = as_int64(ids, &scratch_[k]);
    part.zeros = zeros_.data();
    part.offsets = part.pool == Pool::kNone ? nullptr : sequence::offsets(ids).data();
    check_table_ids(names_[k], ids, part.ids, w.rows(), part.padding);
  }

  In w_, ids_, xs_;
  Out out_;
  std::vector<int32_t> table_, part_width_;  // per lookup, per part
  std::vector<IdSource> names_;
  std::vector<size_t> lookup_;                 // index of its part
  std::vector<std::pair<size_t, int>> dense_;  // parts that are copied, with the index of X
  std::vector<GatherPart<T>> parts_;
  std::vector<Tensor> scratch_;
  std::vector<T> zeros_;
  int64_t columns_ = 0;
};

AB_OP(fused_embedding_concat)
    .doc(
        "Out = parts, concatenated: rows of tables by id, optionally pooled over sequences, and matrices X. Inserted "
        "by the engine for lookups that are concatenated.")
    .in_list("W", "[height, width] float: the tables")
    .in_list("Ids", "int32 or int64: one per lookup, with LoD if they are pooled")
    .in_optional_list("X", "[rows, columns] like W")
    .out("Out", "[rows, sum of the widths of the parts]")
    .attr<std::vector<int32_t>>("table", {}, "of each lookup: index of its W")
    .attr<std::vector<int64_t>>("padding_idx", {}, "of each lookup: id that reads as zeros; -1: none")
    .attr<std::vector<int32_t>>("pool", {}, "of each lookup: 0 none, or pooled by 1 sum, 2 average, 3 square root")
    .attr<std::vector<float>>("pad_value", {}, "of each lookup: value of an empty sequence")
    .attr<std::vector<int32_t>>("ids_rank", {}, "of each lookup: number of axes of Ids; empty: not compared")
    .attr<std::vector<int64_t>>("ids_a_row", {}, "of each lookup: elements of Ids per row; -1: any number")
    .attr<std::vector<int32_t>>("last_is_one", {}, "of each lookup: whether the last extent of Ids must be 1")
    .attr<std::vector<int32_t>>("source", {}, "of each part: k for lookup k, -1 - k for X[k]")
    .attr<std::vector<int32_t>>("width", {}, "of each part: number of its columns")
    .traits(kLooksUp)
    .infer(infer)
    .no_grad("it is inserted after the gradients")
    .dtype_of_input("W")
    .with(reports_ids)
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return queued_concat<T>(op); })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto kernel = std::make_shared<GatherConcat<T>>(op);
      return [kernel](KernelContext& c) { (*kernel)(c); };
    });

}  // namespace
}  // namespace anabranch::sparse::fused_embedding_op
