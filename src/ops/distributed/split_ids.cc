// Splits ids by server (id modulo the number of servers), and merges the results.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/selected_rows.h"
#include "ops/declare/declare.h"

namespace anabranch::distributed::split_ids_op {
namespace {

void check_column(const InferContext& c, std::string_view slot, int i) {
  const Meta& m = c.in(slot, i);
  AB_CHECK(m.dtype == DType::kInt64, InvalidArgument, "{} must hold int64, got {}", slot, dtype_name(m.dtype));
  AB_CHECK(m.shape.rank() == 2 && (m.shape[1] == 1 || m.shape[1] == kUnknown), InvalidArgument,
           "{} must be [n, 1], got {}", slot, m.shape.str());
}

// ---- split_ids

void infer_split(InferContext& c) {
  AB_CHECK(c.n_out("Out") > 0, InvalidArgument, "Out must have at least one variable");
  const bool rows = c.in("Ids").kind == VarKind::kSelectedRows;
  for (int i = 0; i < c.n_in("Ids"); ++i) {
    AB_CHECK(!rows || i == 0, InvalidArgument, "Ids must be a single variable if it holds sparse rows, got {}",
             c.n_in("Ids"));
    AB_CHECK((c.in("Ids", i).kind == VarKind::kSelectedRows) == rows, InvalidArgument,
             "Ids must be tensors, or one variable of sparse rows");
    if (!rows) check_column(c, "Ids", i);
  }
  for (int i = 0; i < c.n_out("Out"); ++i) {
    if (rows) {
      c.out("Out", i) = c.in("Ids");
    } else {
      c.set_out("Out", c.runtime() ? Shape{0, 1} : Shape{kUnknown, 1}, DType::kInt64, i);
    }
  }
}

void check_id(int64_t id) { AB_CHECK(id >= 0, InvalidArgument, "Ids must not be negative, got {}", id); }

// The distinct ids of several tensors, ascending. Keeps its memory.
class Distinct {
 public:
  const std::vector<int64_t>& of(KernelContext& c, In ids) {
    int64_t n = 0, largest = -1;
    for (int i = 0; i < ids.count; ++i) {
      const auto* from = c.at(ids, i).data<int64_t>();
      const int64_t count = c.at(ids, i).numel();
      std::for_each(from, from + count, check_id);
      largest = count > 0 ? std::max(largest, *std::max_element(from, from + count)) : largest;
      n += count;
    }
    ids_.clear();
    // Uses a bit per id as long as that takes no more memory than the ids.
    largest / 64 <= n ? by_bits(c, ids, largest) : by_order(c, ids);
    return ids_;
  }

 private:
  void by_bits(KernelContext& c, In ids, int64_t largest) {
    seen_.assign(static_cast<size_t>(largest / 64 + 1), 0);
    for (int i = 0; i < ids.count; ++i) {
      const auto* from = c.at(ids, i).data<int64_t>();
      for (int64_t k = 0; k < c.at(ids, i).numel(); ++k) seen_[static_cast<size_t>(from[k] / 64)] |= bit(from[k]);
    }
    for (size_t word = 0; word < seen_.size(); ++word) {
      for (uint64_t left = seen_[word]; left != 0; left &= left - 1) {
        ids_.push_back(static_cast<int64_t>(word) * 64 + std::countr_zero(left));
      }
    }
  }
  static uint64_t bit(int64_t id) { return uint64_t{1} << (id % 64); }

  void by_order(KernelContext& c, In ids) {
    for (int i = 0; i < ids.count; ++i) {
      const auto* from = c.at(ids, i).data<int64_t>();
      ids_.insert(ids_.end(), from, from + c.at(ids, i).numel());
    }
    std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  }

  std::vector<int64_t> ids_;
  std::vector<uint64_t> seen_;
};

void split_tensors(KernelContext& c, In ids, Out out, Distinct* distinct) {
  const std::vector<int64_t>& all = distinct->of(c, ids);
  for (int s = 0; s < out.count; ++s) {
    if (!c.needs(out, s)) continue;
    const auto mine = [&](int64_t id) { return id % out.count == s; };
    Tensor& to = c.at(out, s);
    to.resize(Shape{std::count_if(all.begin(), all.end(), mine), 1}, DType::kInt64);
    std::copy_if(all.begin(), all.end(), to.mutable_data<int64_t>(), mine);
  }
}

void split_rows(KernelContext& c, In ids, Out out) {
  const SelectedRows& from = c.value(ids).rows();
  std::for_each(from.rows.begin(), from.rows.end(), check_id);
  const size_t width = from.rows.empty() ? 0 : from.value.bytes() / from.rows.size();
  const auto* source = static_cast<const char*>(from.value.raw());
  for (int s = 0; s < out.count; ++s) {
    if (!c.needs(out, s)) continue;
    auto& to = c.value(out, s).as<SelectedRows>();
    to.height = from.height;
    to.rows.clear();
    for (const int64_t row : from.rows) {
      if (row % out.count == s) to.rows.push_back(row);
    }
    Shape shape = from.value.shape();
    shape.set(0, static_cast<int64_t>(to.rows.size()));
    to.value.resize(shape, from.value.dtype());
    auto* target = static_cast<char*>(to.value.mutable_raw());
    for (size_t i = 0; i < from.rows.size(); ++i) {
      if (from.rows[i] % out.count != s) continue;
      std::memcpy(target, source + i * width, width);
      target += width;
    }
  }
}

AB_OP(split_ids)
    .doc(
        "Out[s] = the ids of all Ids with id modulo the number of Out = s, without duplicates, ascending. For sparse "
        "rows: each row with its values, in order.")
    .in_list("Ids", "[n, 1] non-negative int64, or one variable of sparse rows")
    .takes("Ids", Holds::kTensorOrRows)
    .out_list("Out", "[m, 1] int64, or sparse rows")
    .effects(kDynamic)
    .infer(infer_split)
    .no_grad("applies to ids and gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In ids = op.in("Ids");
      const Out out = op.out("Out");
      return [=, distinct = std::make_shared<Distinct>()](KernelContext& c) {
        if (c.value(ids).is<SelectedRows>()) return split_rows(c, ids, out);
        split_tensors(c, ids, out, distinct.get());
      };
    });

// ---- merge_ids

void infer_merge(InferContext& c) {
  AB_CHECK(c.n_in("Ids") == c.n_out("Out"), InvalidArgument, "Ids and Out must have the same length, got {} and {}",
           c.n_in("Ids"), c.n_out("Out"));
  AB_CHECK(c.n_in("Rows") == c.n_in("X"), InvalidArgument, "Rows and X must have the same length, got {} and {}",
           c.n_in("Rows"), c.n_in("X"));
  for (int i = 0; i < c.n_in("X"); ++i) {
    const Meta &x = c.in("X", i), &first = c.in("X");
    check_column(c, "Rows", i);
    AB_CHECK(x.shape.rank() == 2, InvalidArgument, "X must be [n, width], got {}", x.shape.str());
    AB_CHECK(x.dtype == first.dtype && (x.shape[1] == first.shape[1] || x.shape[1] < 0 || first.shape[1] < 0),
             ShapeMismatch, "all X must have the same width and dtype, got {} {} and {} {}", first.shape.str(),
             dtype_name(first.dtype), x.shape.str(), dtype_name(x.dtype));
    const int64_t rows = c.in("Rows", i).shape[0];
    AB_CHECK(rows < 0 || x.shape[0] < 0 || rows == x.shape[0], ShapeMismatch,
             "X must have a row for each of Rows, got X {} and {} rows", x.shape.str(), rows);
  }
  for (int i = 0; i < c.n_in("Ids"); ++i) {
    check_column(c, "Ids", i);
    c.set_out("Out", Shape{c.in("Ids", i).shape[0], c.in("X").shape[1]}, c.in("X").dtype, i);
    c.out("Out", i).lod = c.in("Ids", i).lod;
    c.out("Out", i).lod_level = c.in("Ids", i).lod_level;
  }
}

using Found = std::unordered_map<int64_t, const char*>;

Kernel merge_kernel(const KernelArgs& op) {
  const In ids = op.in("Ids"), rows = op.in("Rows"), x = op.in("X");
  const Out out = op.out("Out");
  return [=, found = std::make_shared<Found>()](KernelContext& c) {
    found->clear();
    size_t width = 0;
    for (int i = 0; i < rows.count; ++i) {
      const int64_t n = c.at(rows, i).numel();
      if (n == 0) continue;
      width = c.at(x, i).bytes() / static_cast<size_t>(n);
      const auto* id = c.at(rows, i).data<int64_t>();
      const auto* row = static_cast<const char*>(c.at(x, i).raw());
      for (int64_t k = 0; k < n; ++k, row += width) (*found)[id[k]] = row;
    }
    for (int i = 0; i < ids.count; ++i) {
      if (!c.needs(out, i)) continue;
      const auto* id = c.at(ids, i).data<int64_t>();
      auto* to = static_cast<char*>(c.at(out, i).mutable_raw());
      for (int64_t k = 0; k < c.at(ids, i).numel(); ++k, to += width) {
        const auto row = found->find(id[k]);
        AB_CHECK(row != found->end(), InvalidArgument, "Ids must be in Rows, got id {}", id[k]);
        std::memcpy(to, row->second, width);
      }
    }
  };
}

AB_OP(merge_ids)
    .doc("Out[i][k] = the row of X whose id, in Rows, is Ids[i][k].")
    .in_list("Ids", "[n, 1] int64")
    .in_list("Rows", "[m, 1] int64, the ids of the rows of each X")
    .in_list("X", "[m, width]")
    .out_list("Out", "[n, width]")
    .infer(infer_merge)
    .no_grad("applies to fetched rows")
    .cpu_any(merge_kernel);

}  // namespace
}  // namespace anabranch::distributed::split_ids_op
