// Converts a batch of sequences to an array with one tensor per step, and back: element t holds part t of every
// sequence that has one, longest sequence first.
#include <algorithm>

#include "opdef/op_def.h"
#include "ops/control/rank_table.h"

namespace anabranch::control::lod_array_op {
namespace {

const TensorArray& array_of(const KernelContext& c, In in, const char* slot) {
  static const TensorArray never_written;
  if (c.value(in).empty()) return never_written;
  const auto* array = c.value(in).get<TensorArray>();
  AB_CHECK(array, InvalidArgument, "{} must hold an array of tensors", slot);
  return *array;
}

void resize_array(TensorArray& array, int64_t size) {
  array.resize(static_cast<size_t>(size));
  for (Tensor& t : array) {
    if (t.is_shared()) t = Tensor();
  }
}

// Distributes the rows of a tensor of sequences over the array.
void spread(const Tensor& x, const RankTable& table, const Steps& steps, bool with_lod, TensorArray& out) {
  resize_array(out, table.steps());
  for (int64_t t = 0; t < table.steps(); ++t) {
    const int64_t n = table.going_on(t);
    int64_t rows = 0, at = 0;
    LoD lod(with_lod ? steps.parts().levels() : 0, {0});
    for (int64_t rank = 0; rank < n; ++rank) {
      rows += steps.part(t, rank).count;
      if (!lod.empty()) append_lod(&lod, steps.part_lod(t, rank));
    }
    Tensor& to = out[static_cast<size_t>(t)];
    resize_rows(to, x, rows);
    for (int64_t rank = 0; rank < n; ++rank) {
      const Rows part = steps.part(t, rank);
      copy_rows(x, part.first, to, at, part.count);
      at += part.count;
    }
    give_lod(to, std::move(lod));
  }
}

// The inverse; elements that were never written are zero if that is allowed.
void collect(const TensorArray& array, const RankTable& table, const Steps& steps, bool may_miss, Tensor& out) {
  if (may_miss) std::memset(out.mutable_raw(), 0, out.bytes());
  for (int64_t t = 0; t < table.steps(); ++t) {
    const Tensor* from = static_cast<size_t>(t) < array.size() ? &array[static_cast<size_t>(t)] : nullptr;
    if (may_miss && (!from || !from->initialized())) continue;
    AB_CHECK(from && from->initialized(), InvalidArgument, "element {} of {} was never written", t, table.steps());
    AB_CHECK(from->dtype() == out.dtype() && from->row_elems() == out.row_elems(), ShapeMismatch,
             "element {} must have rows of {} {}, got {} {}", t, dtype_name(out.dtype()), out.shape().str(),
             dtype_name(from->dtype()), from->shape().str());
    int64_t at = 0;
    for (int64_t rank = 0; rank < table.going_on(t); ++rank) {
      const Rows part = steps.part(t, rank);
      AB_CHECK(at + part.count <= from->rows(), ShapeMismatch, "element {} must have more than {} rows, got {}", t, at,
               from->shape().str());
      copy_rows(*from, at, out, part.first, part.count);
      at += part.count;
    }
  }
}

// The LoD of the elements together.
LoD joined_lod(const TensorArray& array, const RankTable& table) {
  std::vector<int64_t> starts(table.items.size() + 1, 0);
  for (const auto& item : table.items) starts[static_cast<size_t>(item.index) + 1] = item.length;
  for (size_t i = 0; i + 1 < starts.size(); ++i) starts[i + 1] += starts[i];
  LoD below;
  if (!array.empty() && !array[0].lod().empty()) below.assign(array[0].lod().size(), {0});
  if (!below.empty()) {
    std::vector<std::pair<int64_t, int64_t>> ranks(table.items.size());  // by sequence: rank, length
    for (size_t r = 0; r < table.items.size(); ++r) {
      ranks[static_cast<size_t>(table.items[r].index)] = {static_cast<int64_t>(r), table.items[r].length};
    }
    for (const auto& [rank, length] : ranks) {
      for (int64_t t = 0; t < length; ++t) {
        const Tensor& from = array[static_cast<size_t>(t)];
        const Slices parts(from.lod(), 0, from.rows());
        AB_CHECK(parts.levels() == below.size() && rank < parts.count(), ShapeMismatch,
                 "element {} must have sequences like element 0, and more than {} of them", t, rank);
        append_lod(&below, parts.lod(rank, rank + 1));
      }
    }
  }
  LoD lod = table.above;
  lod.push_back(std::move(starts));
  lod.insert(lod.end(), below.begin(), below.end());
  return lod;
}

void check_elements(const TensorArray& array, const RankTable& table) {
  AB_CHECK(static_cast<int64_t>(array.size()) >= table.steps(), ShapeMismatch,
           "X must have one element for each of {} steps, got {}", table.steps(), array.size());
  for (int64_t t = 0; t < table.steps(); ++t) {
    const Tensor& e = array[static_cast<size_t>(t)];
    AB_CHECK(e.initialized() && e.shape().rank() > 0, InvalidArgument, "element {} of {} was never written", t,
             table.steps());
  }
}

AB_OP(lod_tensor_to_array)
    .doc("Out[t] = part t of each sequence of X that has one, in table order.")
    .in("X", "with the sequences of the table")
    .in("RankTable", "of lod_rank_table")
    .takes("RankTable", Holds::kAnything)
    .out("Out", "an array of tensors")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      Meta& out = c.out("Out");
      out.kind = VarKind::kLoDTensorArray;
      if (c.runtime()) return;
      out.shape = c.in("X").shape;
      out.dtype = c.in("X").dtype;
      out.lod_level = std::max(0, c.in("X").lod_level - 1);
    })
    .dtype_of_input("X")
    .grad_reads({"X", "RankTable"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), table = op.in("RankTable"), out = op.out("Out")](KernelContext& c) {
        const RankTable& order = rank_table(c, table);
        spread(c[x], order, Steps(order, c[x].lod(), c[x].rows()), true, c.value(out).as<TensorArray>());
      };
    });

AB_GRAD(lod_tensor_to_array)
    .doc(
        "X@GRAD: the rows of the elements of Out@GRAD at their original positions; zeros for elements without a "
        "gradient.")
    .takes("RankTable", Holds::kAnything)
    .takes("Out@GRAD", Holds::kAnything)
    .effects(kDynamic | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.same_as("X@GRAD", "X"); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), table = op.in("RankTable"), dout = op.in("Out@GRAD"),
              out = op.out("X@GRAD")](KernelContext& c) {
        const RankTable& order = rank_table(c, table);
        collect(array_of(c, dout, "Out@GRAD"), order, Steps(order, c[x].lod(), c[x].rows()), true, c[out]);
      };
    });

AB_OP(array_to_lod_tensor)
    .doc("Out = the elements of X as sequences in their original order: the inverse of lod_tensor_to_array.")
    .in("X", "an array with one element for each step")
    .takes("X", Holds::kAnything)
    .in("RankTable", "of lod_rank_table")
    .takes("RankTable", Holds::kAnything)
    .out("Out", "with the sequences of the table")
    .effects(kDynamic | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      if (c.runtime()) return;
      Meta& out = c.out("Out");
      out.kind = VarKind::kLoDTensor;
      out.shape = c.in("X").shape;
      if (out.shape.rank() > 0) out.shape.set(0, kUnknown);
      out.dtype = c.in("X").dtype;
      out.lod_level = c.in("X").lod_level + 1;
    })
    .grad_reads({"X", "RankTable"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), table = op.in("RankTable"), out = op.out("Out")](KernelContext& c) {
        const RankTable& order = rank_table(c, table);
        const TensorArray& array = array_of(c, x, "X");
        AB_CHECK(order.steps() > 0, InvalidArgument, "the table must have a sequence with at least one part");
        check_elements(array, order);
        int64_t rows = 0;
        for (int64_t t = 0; t < order.steps(); ++t) rows += array[static_cast<size_t>(t)].rows();
        LoD lod = joined_lod(array, order);
        Tensor& to = c.value(out).as<Tensor>();
        resize_rows(to, array[0], rows);
        const Steps steps(order, lod, rows);
        AB_CHECK(lod.back().back() == rows, ShapeMismatch, "the elements must have {} rows together, got {}",
                 lod.back().back(), rows);
        collect(array, order, steps, false, to);
        give_lod(to, std::move(lod));
      };
    });

AB_GRAD(array_to_lod_tensor)
    .doc("X@GRAD[t] = the rows of Out@GRAD that came from X[t].")
    .takes("X", Holds::kAnything)
    .takes("RankTable", Holds::kAnything)
    .effects(kDynamic | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      Meta& out = c.out("X@GRAD");
      if (!c.runtime()) out = c.in("X");
      out.kind = VarKind::kLoDTensorArray;
    })
    .dtype_of_input("Out@GRAD")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), table = op.in("RankTable"), dout = op.in("Out@GRAD"),
              out = op.out("X@GRAD")](KernelContext& c) {
        const RankTable& order = rank_table(c, table);
        const TensorArray& array = array_of(c, x, "X");
        check_elements(array, order);
        const LoD lod = joined_lod(array, order);
        AB_CHECK(lod.back().back() == c[dout].rows(), ShapeMismatch, "Out@GRAD must have {} rows, got {}",
                 lod.back().back(), c[dout].shape().str());
        spread(c[dout], order, Steps(order, lod, c[dout].rows()), false, c.value(out).as<TensorArray>());
      };
    });

}  // namespace
}  // namespace anabranch::control::lod_array_op
