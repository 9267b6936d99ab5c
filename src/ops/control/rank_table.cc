#include "ops/control/rank_table.h"

#include <algorithm>

#include "opdef/op_def.h"
#include "ops/declare/declare.h"

namespace anabranch::control {

int64_t RankTable::going_on(int64_t step) const {
  const auto end = std::partition_point(items.begin(), items.end(), [&](const Item& i) { return i.length > step; });
  return end - items.begin();
}

namespace {

// The marks at both ends distinguish it from other opaque objects.
struct HeldTable {
  static constexpr uint64_t kMark = 0x72616e6b5f746162u;
  uint64_t mark = kMark;
  RankTable table;
};

void fill(const LoD& lod, int level, RankTable* table) {
  AB_CHECK(level >= 0 && static_cast<size_t>(level) < lod.size(), InvalidArgument,
           "level must be one of the {} levels of sequences of X, got {}", lod.size(), level);
  const auto& offsets = lod[static_cast<size_t>(level)];
  table->above.assign(lod.begin(), lod.begin() + level);
  table->items.clear();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    table->items.push_back({static_cast<int64_t>(i), offsets[i + 1] - offsets[i]});
  }
  std::stable_sort(table->items.begin(), table->items.end(),
                   [](const RankTable::Item& a, const RankTable::Item& b) { return a.length > b.length; });
}

}  // namespace

const RankTable& rank_table(const KernelContext& c, In in) {
  const auto* held = c.value(in).get<std::shared_ptr<void>>();
  const auto* table = held ? static_cast<const HeldTable*>(held->get()) : nullptr;
  AB_CHECK(table && table->mark == HeldTable::kMark, InvalidArgument,
           "RankTable must hold an output of lod_rank_table");
  return table->table;
}

Steps::Steps(const RankTable& table, const LoD& lod, int64_t rows) : table_(table) {
  const size_t level = table.above.size();
  AB_CHECK(level < lod.size() && lod[level].size() == table.items.size() + 1, ShapeMismatch,
           "X must have {} sequences in level {}, as the table has, got {}", table.items.size(), level, lod_str(lod));
  starts_ = lod[level];
  const LoD below(lod.begin() + static_cast<std::ptrdiff_t>(level) + 1, lod.end());
  parts_ = Slices(below, 0, rows);
  for (const auto& item : table.items) {
    const auto i = static_cast<size_t>(item.index);
    AB_CHECK(starts_[i + 1] - starts_[i] == item.length, ShapeMismatch,
             "sequence {} of X must have {} parts, as in the table, got {}", i, item.length,
             starts_[i + 1] - starts_[i]);
  }
}

Rows Steps::part(int64_t step, int64_t rank) const {
  const int64_t at = starts_[static_cast<size_t>(table_.items[static_cast<size_t>(rank)].index)] + step;
  return parts_.rows(at, at + 1);
}

LoD Steps::part_lod(int64_t step, int64_t rank) const {
  const int64_t at = starts_[static_cast<size_t>(table_.items[static_cast<size_t>(rank)].index)] + step;
  return parts_.lod(at, at + 1);
}

AB_OP(lod_rank_table)
    .doc("Out = the sequences of one level of X by descending length; equal lengths keep their order.")
    .in("X", "a tensor with LoD")
    .out("Out", "a table")
    .attr<int32_t>("level", 0, "LoD level to sort")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      c.out("Out").kind = VarKind::kLoDRankTable;
      c.out("Out").shape = Shape();
    })
    .no_grad("the output is an order")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), level = op.attr<int32_t>("level")](KernelContext& c) {
        auto& held = c.value(out).as<std::shared_ptr<void>>();
        if (!held || held.use_count() > 1 || static_cast<HeldTable*>(held.get())->mark != HeldTable::kMark) {
          held = std::make_shared<HeldTable>();
        }
        fill(c[x].lod(), level, &static_cast<HeldTable*>(held.get())->table);
      };
    });

AB_OP(max_sequence_len)
    .doc("Out = the length of the longest sequence of the table.")
    .in("RankTable", "of lod_rank_table")
    .takes("RankTable", Holds::kAnything)
    .out("Out", "[1] int64")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), DType::kInt64); })
    .no_grad("the output is a count")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [table = op.in("RankTable"), out = op.out("Out")](KernelContext& c) {
        *c[out].mutable_data<int64_t>() = rank_table(c, table).steps();
      };
    });

namespace {

// fn(rank, first item) ... for a tensor in table order: items of its outermost level, or rows.
Slices ordered_slices(const RankTable& table, const LoD& lod, int64_t rows) {
  Slices slices(lod, 0, rows);
  AB_CHECK(slices.count() == static_cast<int64_t>(table.items.size()), ShapeMismatch,
           "X must have one sequence or row for each of the {} sequences of the table, got {}", table.items.size(),
           slices.count());
  return slices;
}

void reorder(const RankTable& table, const Tensor& x, const Slices& slices, Tensor& out) {
  LoD lod(slices.levels(), {0});
  int64_t at = 0;
  for (const auto& item : table.items) {
    const Rows run = slices.rows(item.index, item.index + 1);
    copy_rows(x, run.first, out, at, run.count);
    at += run.count;
    if (slices.have_lod()) append_lod(&lod, slices.lod(item.index, item.index + 1));
  }
  give_lod(out, std::move(lod));
}

}  // namespace

AB_OP(reorder_lod_tensor_by_rank)
    .doc("Out = the sequences of X, or its rows without LoD, in table order.")
    .in("X", "one sequence or row per sequence of the table")
    .in("RankTable", "of lod_rank_table")
    .takes("RankTable", Holds::kAnything)
    .out("Out", "like X")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      c.same_as("Out", "X");
      if (c.runtime()) c.out("Out").lod = nullptr;
    })
    .dtype_of_input("X")
    .grad_reads({"X", "RankTable"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), table = op.in("RankTable"), out = op.out("Out")](KernelContext& c) {
        const RankTable& order = rank_table(c, table);
        reorder(order, c[x], ordered_slices(order, c[x].lod(), c[x].rows()), c[out]);
      };
    });

AB_GRAD(reorder_lod_tensor_by_rank)
    .doc("X@GRAD = the rows of Out@GRAD, back in the order of X.")
    .takes("RankTable", Holds::kAnything)
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      const Meta &dout = c.in("Out@GRAD"), &x = c.in("X");
      AB_CHECK(compatible(dout.shape, x.shape), ShapeMismatch, "Out@GRAD must be {}, as X, got {}", x.shape.str(),
               dout.shape.str());
      c.same_as("X@GRAD", "X");
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), table = op.in("RankTable"), dout = op.in("Out@GRAD"),
              out = op.out("X@GRAD")](KernelContext& c) {
        const RankTable& order = rank_table(c, table);
        const Slices slices = ordered_slices(order, c[x].lod(), c[x].rows());
        int64_t at = 0;
        for (const auto& item : order.items) {
          const Rows run = slices.rows(item.index, item.index + 1);
          copy_rows(c[dout], at, c[out], run.first, run.count);
          at += run.count;
        }
      };
    });

AB_OP(shrink_rnn_memory)
    .doc("Out = the first N sequences (or rows) of X, where N sequences of the table are longer than I.")
    .in("X", "in table order")
    .in("RankTable", "of lod_rank_table")
    .takes("RankTable", Holds::kAnything)
    .in("I", "[1] int64")
    .out("Out", "like X")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      if (c.runtime()) return;
      c.same_as("Out", "X");
      if (c.out("Out").shape.rank() > 0) c.out("Out").shape.set(0, kUnknown);
    })
    .dtype_of_input("X")
    .grad_reads({"X"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), table = op.in("RankTable"), at = op.in("I"), out = op.out("Out")](KernelContext& c) {
        AB_CHECK(c[at].numel() == 1 && c[at].dtype() == DType::kInt64, InvalidArgument,
                 "I must be one int64, got {} {}", dtype_name(c[at].dtype()), c[at].shape().str());
        const Slices slices(c[x].lod(), 0, c[x].rows());
        const int64_t n = rank_table(c, table).going_on(*c[at].data<int64_t>());
        AB_CHECK(n <= slices.count(), ShapeMismatch, "X must have at least {} sequences or rows, got {}", n,
                 slices.count());
        Tensor& to = c.value(out).as<Tensor>();
        const int64_t rows = slices.rows(0, n).count;
        resize_rows(to, c[x], rows);
        copy_rows(c[x], 0, to, 0, rows);
        give_lod(to, n > 0 ? slices.lod(0, n) : LoD{});
      };
    });

AB_GRAD(shrink_rnn_memory)
    .doc("X@GRAD = Out@GRAD, and zeros for sequences that have ended.")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.same_as("X@GRAD", "X"); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [dout = op.in("Out@GRAD"), out = op.out("X@GRAD")](KernelContext& c) {
        Tensor& to = c[out];
        AB_CHECK(c[dout].rows() <= to.rows() && c[dout].row_elems() == to.row_elems() && c[dout].dtype() == to.dtype(),
                 ShapeMismatch, "Out@GRAD must have at most the {} rows of X, got {}", to.rows(),
                 c[dout].shape().str());
        const int64_t rows = c[dout].rows();
        copy_rows(c[dout], 0, to, 0, rows);
        const size_t bytes = row_bytes(to);
        std::memset(static_cast<char*>(to.mutable_raw()) + static_cast<size_t>(rows) * bytes, 0,
                    static_cast<size_t>(to.rows() - rows) * bytes);
      };
    });

}  // namespace anabranch::control
