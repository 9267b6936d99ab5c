// Cutting values by rows: into pieces that follow each other, tensors and sparse rows.
#include <cstring>
#include <memory>
#include <numeric>

#include "core/selected_rows.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/copy.h"

namespace anabranch::distributed {
namespace {

// ---- split_byref

// The rows of each piece, none where pieces have equally many.
template <class Context> std::vector<int32_t> sections_of(const Context& c) {
  return c.template attr<int32_t>("num") > 0 ? std::vector<int32_t>()
                                             : c.template attr<std::vector<int32_t>>("sections");
}

int64_t rows_of_piece(const InferContext& c, const std::vector<int32_t>& sections, int64_t rows, int i) {
  if (!sections.empty()) return sections[static_cast<size_t>(i)];
  return rows < 0 ? kUnknown : rows / c.n_out("Out");
}

void infer_split(InferContext& c) {
  check_rank(c, "X", 1, kMaxRank);
  const Meta& x = c.in("X");
  const std::vector<int32_t> sections = sections_of(c);
  const int64_t rows = x.shape[0], pieces = c.n_out("Out");
  if (sections.empty()) {
    AB_CHECK(pieces > 0 && (rows < 0 || rows % pieces == 0), ShapeMismatch,
             "without sections the rows of X must be cut evenly into {} pieces, got X {}", pieces, x.shape.str());
  } else {
    AB_CHECK(static_cast<int64_t>(sections.size()) == pieces, InvalidArgument,
             "sections must be as many as Out, {}, got {}", pieces, sections.size());
    int64_t sum = 0;
    for (const int32_t s : sections) {
      AB_CHECK(s >= 0, InvalidArgument, "sections must not be negative, got {}", s);
      sum += s;
    }
    AB_CHECK(rows < 0 || sum <= rows, ShapeMismatch, "sections add up to {} rows, X is {}", sum, x.shape.str());
  }
  for (int i = 0; i < pieces; ++i) {
    Shape shape = x.shape;
    shape.set(0, rows_of_piece(c, sections, rows, i));
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
      if (bytes && c.wants(out, i)) std::memcpy(c.at(out, i).mutable_raw(), from, bytes);
      from += bytes;
    }
  };
}

AB_OP(split_byref)
    .doc("Out[i] = the next sections[i] rows of X; without sections, pieces of equally many rows.")
    .in("X", "[rows, ...]")
    .out_list("Out", "[sections[i], ...]")
    .attr<std::vector<int32_t>>("sections", {}, "rows of each piece; the rows after the last piece are left out")
    .attr<int32_t>("num", 0, "above 0: the pieces have equally many rows, whatever sections says; those of Out count",
                   at_least<int32_t>("num", 0))
    .infer(infer_split)
    .no_grad("used on gradients")
    .cpu_any(split_kernel);

// ---- split_selected_rows

void infer_rows(InferContext& c) {
  const auto& sections = c.attr<std::vector<int64_t>>("height_sections");
  AB_CHECK(static_cast<int>(sections.size()) == c.n_out("Out"), InvalidArgument,
           "height_sections must be as many as Out, {}, got {}", c.n_out("Out"), sections.size());
  for (int i = 0; i < c.n_out("Out"); ++i) {
    const int64_t height = sections[static_cast<size_t>(i)];
    AB_CHECK(height >= 0, InvalidArgument, "height_sections must not be negative, got {}", height);
    Meta& out = c.out("Out", i);
    out = c.in("X");
    out.kind = VarKind::kSelectedRows;
    if (out.shape.rank() > 0) out.shape.set(0, height);
  }
}

// Where the rows of each piece begin; one more than there are pieces.
std::vector<int64_t> begins(const std::vector<int64_t>& sections) {
  std::vector<int64_t> at(sections.size() + 1, 0);
  for (size_t i = 0; i < sections.size(); ++i) {
    AB_CHECK(sections[i] <= INT64_MAX - at[i], InvalidArgument, "height_sections add up to more than 2^63 rows");
    at[i + 1] = at[i] + sections[i];
  }
  return at;
}

void take_piece(const SelectedRows& from, int64_t begin, int64_t end, SelectedRows* to) {
  to->height = end - begin;
  to->rows.clear();
  for (const int64_t row : from.rows) {
    if (row >= begin && row < end) to->rows.push_back(row - begin);
  }
  Shape shape = from.value.shape();
  shape.set(0, static_cast<int64_t>(to->rows.size()));
  to->value.resize(shape, from.value.dtype());
  const size_t width = from.rows.empty() ? 0 : from.value.bytes() / from.rows.size();
  const auto* source = static_cast<const char*>(from.value.raw());
  auto* target = static_cast<char*>(to->value.mutable_raw());
  for (size_t i = 0; i < from.rows.size(); ++i) {
    if (from.rows[i] < begin || from.rows[i] >= end) continue;
    std::memcpy(target, source + i * width, width);
    target += width;
  }
}

Kernel split_rows_kernel(const KernelArgs& op) {
  const std::vector<int64_t> at = begins(op.attr<std::vector<int64_t>>("height_sections"));
  return [=, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    const SelectedRows& from = c.value(x).rows();
    for (const int64_t row : from.rows) {
      AB_CHECK(row >= 0 && row < at.back(), InvalidArgument, "row {} of X is not in the {} rows of height_sections",
               row, at.back());
    }
    for (int i = 0; i < out.count; ++i) {
      const auto k = static_cast<size_t>(i);
      if (c.wants(out, i)) take_piece(from, at[k], at[k + 1], &c.value(out, i).as<SelectedRows>());
    }
  };
}

AB_OP(split_selected_rows)
    .doc("Out[i] = the rows of X in the next height_sections[i] rows of the table, numbered from the first of them.")
    .in("X", "sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out_list("Out", "sparse rows of height height_sections[i]")
    .attr<std::vector<int64_t>>("height_sections", {}, "rows of the table for each piece")
    .infer(infer_rows)
    .no_grad("used on gradients")
    .cpu_any(split_rows_kernel);

}  // namespace
}  // namespace anabranch::distributed
