// Splits tensors and sparse rows into consecutive ranges of rows.
#include <cstring>

#include "core/selected_rows.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/distributed/row_shards.h"
#include "ops/kernels/copy.h"

namespace anabranch::distributed::split_rows_op {
namespace {

// ---- split_byref

// The number of rows of each range; empty if all ranges are equal.
template <class Context> std::vector<int32_t> sections_of(const Context& c) {
  return c.template attr<int32_t>("num") > 0 ? std::vector<int32_t>()
                                             : c.template attr<std::vector<int32_t>>("sections");
}

int64_t rows_of_shard(const InferContext& c, const std::vector<int32_t>& sections, int64_t rows, int i) {
  if (!sections.empty()) return sections[static_cast<size_t>(i)];
  return rows < 0 ? kUnknown : rows / c.n_out("Out");
}

void infer_split(InferContext& c) {
  check_rank(c, "X", 1, kMaxRank);
  const Meta& x = c.in("X");
  const std::vector<int32_t> sections = sections_of(c);
  const int64_t rows = x.shape[0], shards = c.n_out("Out");
  const int32_t num = c.attr<int32_t>("num");
  AB_CHECK(num == 0 || num == shards, InvalidArgument, "num must be the number of outputs, {}, got {}", shards, num);
  if (sections.empty()) {
    AB_CHECK(shards > 0 && (rows < 0 || rows % shards == 0), ShapeMismatch,
             "the number of rows of X must be divisible by the number of Out ({}) if sections are not given, got X {}",
             shards, x.shape.str());
  } else {
    AB_CHECK(static_cast<int64_t>(sections.size()) == shards, InvalidArgument,
             "sections must have one entry for each of the {} Out, got {}", shards, sections.size());
    int64_t sum = 0;
    for (const int32_t s : sections) {
      AB_CHECK(s >= 0, InvalidArgument, "sections must not be negative, got {}", s);
      sum += s;
    }
    AB_CHECK(rows < 0 || sum <= rows, ShapeMismatch, "sections must not have more rows than X, got {} and X {}", sum,
             x.shape.str());
  }
  for (int i = 0; i < shards; ++i) {
    Shape shape = x.shape;
    shape.set(0, rows_of_shard(c, sections, rows, i));
    c.set_out("Out", shape, x.dtype, i);
  }
}

Kernel split_kernel(const KernelArgs& op) {
  const std::vector<int32_t> sections = sections_of(op);
  return [=, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    const auto* from = static_cast<const char*>(c[x].raw());
    const size_t row = static_cast<size_t>(c[x].row_elems()) * dtype_size(c[x].dtype());
    for (int i = 0; i < out.count; ++i) {
      const int64_t rows = sections.empty() ? c[x].rows() / out.count : sections[static_cast<size_t>(i)];
      const size_t bytes = row * static_cast<size_t>(rows);
      if (bytes && c.needs(out, i)) std::memcpy(c.at(out, i).mutable_raw(), from, bytes);
      from += bytes;
    }
  };
}

AB_OP(split_byref)
    .doc("Out[i] = the next sections[i] rows of X; without sections, equal ranges of rows.")
    .in("X", "[rows, ...]")
    .out_list("Out", "[sections[i], ...]")
    .attr<std::vector<int32_t>>("sections", {}, "number of rows of each Out; further rows of X are dropped")
    .attr<int32_t>("num", 0, "above 0: splits X equally over Out and ignores sections", at_least<int32_t>("num", 0))
    .infer(infer_split)
    .no_grad("applies to gradients")
    .cpu_any(split_kernel);

// ---- split_selected_rows

void infer_rows(InferContext& c) {
  const auto& sections = c.attr<std::vector<int64_t>>("height_sections");
  AB_CHECK(static_cast<int>(sections.size()) == c.n_out("Out"), InvalidArgument,
           "height_sections must have one entry for each of the {} Out, got {}", c.n_out("Out"), sections.size());
  const RowShards cut("height_sections", sections);
  for (int i = 0; i < c.n_out("Out"); ++i) {
    Meta& out = c.out("Out", i);
    out = c.in("X");
    out.kind = VarKind::kSelectedRows;
    if (out.shape.rank() > 0) out.shape.set(0, cut.rows_of(static_cast<size_t>(i)));
  }
}

void take_shard(const SelectedRows& from, const RowShards& cut, size_t shard, SelectedRows* to) {
  to->height = cut.rows_of(shard);
  to->rows.clear();
  for (const int64_t row : from.rows) {
    if (cut.is_in(row, shard)) to->rows.push_back(cut.within(row, shard));
  }
  Shape shape = from.value.shape();
  shape.set(0, static_cast<int64_t>(to->rows.size()));
  to->value.resize(shape, from.value.dtype());
  const size_t width = from.rows.empty() ? 0 : from.value.bytes() / from.rows.size();
  const auto* source = static_cast<const char*>(from.value.raw());
  auto* target = static_cast<char*>(to->value.mutable_raw());
  for (size_t i = 0; i < from.rows.size(); ++i) {
    if (!cut.is_in(from.rows[i], shard)) continue;
    std::memcpy(target, source + i * width, width);
    target += width;
  }
}

Kernel split_rows_kernel(const KernelArgs& op) {
  const RowShards cut("height_sections", op.attr<std::vector<int64_t>>("height_sections"));
  return [=, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    const SelectedRows& from = c.value(x).rows();
    for (const int64_t row : from.rows) {
      AB_CHECK(cut.has(row), InvalidArgument, "X must hold rows below {1}, the sum of height_sections, got {0}", row,
               cut.rows());
    }
    for (int i = 0; i < out.count; ++i) {
      if (c.needs(out, i)) take_shard(from, cut, static_cast<size_t>(i), &c.value(out, i).as<SelectedRows>());
    }
  };
}

AB_OP(split_selected_rows)
    .doc(
        "Out[i] = the rows of X in the next height_sections[i] rows of the table, numbered from the first of them. If "
        "all sections are -1, the table is growable, and Out[i] has the keys whose hash selects server i.")
    .in("X", "sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out_list("Out", "sparse rows of height height_sections[i]")
    .attr<std::vector<int64_t>>("height_sections", {}, "number of rows of each shard of the table, or -1")
    .infer(infer_rows)
    .no_grad("applies to gradients")
    .cpu_any(split_rows_kernel);

}  // namespace
}  // namespace anabranch::distributed::split_rows_op
