// Out = the sum of tensors, each of which covers a slice of Out: the pass sum_slice_gradients creates it from the
// gradients of the slices of one tensor. Each part is added where it belongs, in the order of the parts, so that no
// part is padded with zeros.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/nd_loop.h"
#include "ops/kernels/wide.h"
#include "ops/tensor/slice_ranges.h"

namespace anabranch::tensor::sum_slices_op {
namespace {

// The slices of all parts. A part without axes covers the whole.
std::vector<SliceLists> slices_of(const ir::Op& op) {
  const auto counts = int_attr(op, "counts"), axes = int_attr(op, "axes"), starts = int_attr(op, "starts"),
             ends = int_attr(op, "ends"), strides = int_attr(op, "strides");
  AB_CHECK(axes.size() == starts.size() && axes.size() == ends.size() && axes.size() == strides.size(), InvalidArgument,
           "axes, starts, ends and strides must have the same number of entries, got {}, {}, {} and {}", axes.size(),
           starts.size(), ends.size(), strides.size());
  std::vector<SliceLists> slices;
  size_t at = 0;
  for (const int64_t n : counts) {
    AB_CHECK(n >= 0 && at + static_cast<size_t>(n) <= axes.size(), InvalidArgument,
             "counts must add up to the {} axes, got {} more after {}", axes.size(), n, at);
    SliceLists& one = slices.emplace_back();
    for (const size_t end = at + static_cast<size_t>(n); at < end; ++at) {
      one.axes.push_back(axes[at]);
      one.starts.push_back(starts[at]);
      one.ends.push_back(ends[at]);
      one.strides.push_back(strides[at]);
    }
  }
  return slices;
}

int64_t elements_of(const SliceRanges& r, int rank) {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= r.of[i].count;
  return n;
}

void infer(InferContext& c) {
  const auto slices = slices_of(c.op());
  AB_CHECK(static_cast<int>(slices.size()) == c.n_in("X") && !slices.empty(), InvalidArgument,
           "counts must have one entry for each of the {} X, got {}", c.n_in("X"), slices.size());
  slices[0].axes.empty() ? c.same_as("Out", "X") : c.same_shape("Out", "Like");
  c.out("Out").dtype = c.in("X").dtype;
  const Shape& whole = c.out("Out").shape;
  for (int i = 0; i < c.n_in("X"); ++i) {
    const Meta& x = c.in("X", i);
    AB_CHECK(x.dtype == c.in("X").dtype, InvalidArgument, "all X must have the same dtype, got X[{}] of {} and X of {}",
             i, dtype_name(x.dtype), dtype_name(c.in("X").dtype));
    if (!c.runtime()) continue;
    if (slices[static_cast<size_t>(i)].axes.empty()) {
      AB_CHECK(x.shape == whole, ShapeMismatch, "X[{}] must be {}, got {}", i, whole.str(), x.shape.str());
      continue;
    }
    const int64_t n = elements_of(ranges_of(slices[static_cast<size_t>(i)], whole), whole.rank());
    AB_CHECK(n == x.shape.numel(), ShapeMismatch, "X[{}] must have the {} elements of its slice of {}, got {}", i, n,
             whole.str(), x.shape.str());
  }
}

bool apart(const SliceRange& a, const SliceRange& b) {
  const auto low = [](const SliceRange& r) { return std::min(r.begin, r.begin + (r.count - 1) * r.step); };
  const auto high = [](const SliceRange& r) { return std::max(r.begin, r.begin + (r.count - 1) * r.step); };
  if (high(a) < low(b) || high(b) < low(a)) return true;
  return a.step == b.step && (a.begin - b.begin) % a.step != 0;
}

// Each element of the whole is in exactly one slice. Answers no for very many slices, because all pairs are compared.
bool tile(const std::vector<SliceRanges>& slices, const Shape& whole) {
  constexpr size_t kMost = 512;
  int64_t covered = 0;
  for (const SliceRanges& r : slices) covered += elements_of(r, whole.rank());
  if (covered != whole.numel() || slices.size() > kMost) return false;
  const auto meet = [&](const SliceRanges& a, const SliceRanges& b) {
    for (int i = 0; i < whole.rank(); ++i) {
      if (apart(a.of[i], b.of[i])) return false;
    }
    return true;
  };
  for (size_t i = 0; i < slices.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (meet(slices[i], slices[k])) return false;
    }
  }
  return true;
}

// A part as rows along the first axis of Out that has more than one position: Out is computed in blocks of such rows.
struct Part {
  struct Axis {
    int64_t extent, to_step, from_step;
  };
  SliceRange rows;                       // with a positive step
  int64_t to_first = 0;                  // in Out, without the rows: the first element
  int64_t from_first = 0, from_row = 0;  // in the part: the first element of the first of `rows`, and the next row
  std::array<Axis, kMaxRank> inner;      // the axes after the rows
  int inner_rank = 0;

  Part(const SliceRanges& r, const Shape& whole, int row_axis) {
    const auto to = dense_strides(whole);
    Shape own;
    for (int i = 0; i < whole.rank(); ++i) own.push_back(r.of[i].count);
    const auto from = dense_strides(own);
    rows = r.of[row_axis];
    from_row = from[row_axis];
    if (rows.step < 0) {
      from_first = (rows.count - 1) * from_row;
      from_row = -from_row;
      rows = {rows.begin + (rows.count - 1) * rows.step, -rows.step, rows.count};
    }
    for (int i = row_axis + 1; i < whole.rank(); ++i) {
      to_first += r.of[i].begin * to[i];
      inner[static_cast<size_t>(inner_rank++)] = {own[i], to[i] * r.of[i].step, from[i]};
    }
  }

  // Number of rows before this one of Out.
  int64_t rows_before(int64_t row) const {
    return row <= rows.begin ? 0 : std::min(rows.count, (row - rows.begin + rows.step - 1) / rows.step);
  }
};

template <class T, bool kAdds> void add_part(const NdLoop<2>& loop, const T* from, T* to) {
  const int64_t n = loop.inner();
  const auto step = loop.inner_strides();
  in_wide_vectors([&loop, from, to, n, step] {
    loop.each_run(0, loop.outer(), [=](const auto& at) {
      const T* x = from + at[1];
      T* y = to + at[0];
      // 0 + x, as in a sum with the zeros around the other parts: a negative zero becomes positive.
      if (step[0] == 1 && step[1] == 1) {
        for (int64_t i = 0; i < n; ++i) y[i] = (kAdds ? y[i] : T{0}) + x[i];
      } else {
        for (int64_t i = 0; i < n; ++i) y[i * step[0]] = (kAdds ? y[i * step[0]] : T{0}) + x[i * step[1]];
      }
    });
  });
}

template <class T> class SumSlices {
 public:
  explicit SumSlices(const KernelArgs& op) : slices_(slices_of(op.op())), x_(op.in("X")), out_(op.out("Out")) {}

  void operator()(const KernelContext& c) {
    Tensor& out = c[out_];
    if (out.numel() == 0) return;
    if (!(out.shape() == whole_)) settle(out.shape());
    T* to = out.mutable_data<T>();
    const int64_t block = std::max<int64_t>(1, kBlock / row_elems_);
    c.parallel_for(rows_, std::max<int64_t>(1, kCheapGrain / row_elems_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row += block) compute(c, row, std::min(end, row + block), to);
    });
  }

 private:
  static constexpr int64_t kBlock = 8192;  // elements that stay in the cache until all parts have been added

  void settle(const Shape& whole) {
    std::vector<SliceRanges> ranges;
    for (const SliceLists& lists : slices_) ranges.push_back(ranges_of(lists, whole));
    tiles_ = tile(ranges, whole);
    int axis = 0;
    while (axis + 1 < whole.rank() && whole[axis] == 1) ++axis;
    rows_ = whole[axis];
    row_elems_ = whole.numel(axis + 1, whole.rank());
    parts_.clear();
    for (const SliceRanges& r : ranges) parts_.emplace_back(r, whole, axis);
    whole_ = whole;
  }

  void compute(const KernelContext& c, int64_t begin, int64_t end, T* to) const {
    if (!tiles_) std::fill(to + begin * row_elems_, to + end * row_elems_, T{0});
    for (int i = 0; i < x_.count; ++i) {
      const Part& p = parts_[static_cast<size_t>(i)];
      const int64_t first = p.rows_before(begin), count = p.rows_before(end) - first;
      if (count == 0) continue;
      NdLoop<2> loop;
      loop.add_axis(count, {p.rows.step * row_elems_, p.from_row});
      for (int k = 0; k < p.inner_rank; ++k)
        loop.add_axis(p.inner[k].extent, {p.inner[k].to_step, p.inner[k].from_step});
      if (loop.total() == 0) continue;
      const T* from = c.at(x_, i).data<T>() + p.from_first + first * p.from_row;
      T* at = to + (p.rows.begin + first * p.rows.step) * row_elems_ + p.to_first;
      tiles_ ? add_part<T, false>(loop, from, at) : add_part<T, true>(loop, from, at);
    }
  }

  std::vector<SliceLists> slices_;
  In x_;
  Out out_;
  // of the last shape
  Shape whole_;
  std::vector<Part> parts_;
  bool tiles_ = false;
  int64_t rows_ = 0, row_elems_ = 0;
};

AB_OP(sum_slices)
    .doc("Out = the sum of the X, each added to a slice of zeros in the shape of Like. Inserted by the engine.")
    .in_list("X", "the elements of each slice")
    .in("Like", "[...] only its shape is read")
    .out("Out", "like Like")
    .attr<std::vector<int32_t>>("counts", {}, "of each X: number of axes that are sliced; 0: X is as large as Out")
    .attr<std::vector<int32_t>>("axes", {}, "of all X, one after another: axes to slice")
    .attr<std::vector<int32_t>>("starts", {}, "first position on each axis")
    .attr<std::vector<int32_t>>("ends", {}, "position after the last one on each axis")
    .attr<std::vector<int32_t>>("strides", {}, "strides, not 0; negative ones go backwards")
    .infer(infer)
    .no_grad("it is inserted after the gradients")
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return SumSlices<T>(op); });

}  // namespace
}  // namespace anabranch::tensor::sum_slices_op
