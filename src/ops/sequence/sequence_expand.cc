// Repeats rows or sequences of X by the sequence lengths of Y: sequence_expand repeats whole sequences by the lengths
// of one level of Y; sequence_expand_as repeats rows by the lengths of Y's only level.
#include <algorithm>

#include "ops/device/args_sequence.h"
#include "ops/device/launch_index.h"
#include "ops/device/upload.h"
#include "ops/kernels/copy.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::sequence_expand_op {
namespace {

// The repetition: items of X (rows, or its sequences), each repeated times[i] times.
struct Plan {
  const Offsets* chunks;  // offsets of the items of X; null: each row is one
  const Offsets* times;   // offsets whose differences are the numbers of repetitions
  int64_t repeats(int64_t i) const { return (*times)[static_cast<size_t>(i) + 1] - (*times)[static_cast<size_t>(i)]; }
  int64_t length(int64_t i) const {
    return chunks ? (*chunks)[static_cast<size_t>(i) + 1] - (*chunks)[static_cast<size_t>(i)] : 1;
  }
};

size_t reference_level(const ir::Op& op, const LoD& y) {
  const int32_t level = op.attr<int32_t>("ref_level"), levels = static_cast<int32_t>(y.size());
  AB_CHECK(level >= -1 && level < levels, InvalidArgument, "ref_level must be -1 to {}, an LoD level of Y, got {}",
           levels - 1, level);
  return static_cast<size_t>(level == -1 ? levels - 1 : level);
}

Plan plan_expand(const ir::Op& op, const Shape& x, const LoD& x_lod, const LoD& y_lod) {
  AB_CHECK(x_lod.size() <= 1, InvalidArgument, "X must have at most one LoD level, got {}", x_lod.size());
  const Plan plan{x_lod.empty() ? nullptr : &x_lod[0], &y_lod[reference_level(op, y_lod)]};
  const int64_t chunks = plan.chunks ? count(*plan.chunks) : x[0];
  AB_CHECK(chunks == count(*plan.times), ShapeMismatch,
           "X must have one row or sequence per sequence of the level of Y, got {} {} and {} sequences", chunks,
           x_lod.empty() ? "rows" : "sequences", count(*plan.times));
  return plan;
}

Plan plan_expand_as(const Shape& x, const LoD& y_lod) {
  AB_CHECK(y_lod.size() == 1, InvalidArgument, "Y must have one LoD level, got {}", y_lod.size());
  AB_CHECK(x[0] == count(y_lod[0]), ShapeMismatch, "X must have a row for each of the {} sequences of Y, got {}",
           count(y_lod[0]), x[0]);
  return {nullptr, &y_lod[0]};
}

template <bool kAs> Plan plan_of(const ir::Op& op, const Tensor& x, const Tensor& y) {
  AB_CHECK(!y.lod().empty(), InvalidArgument, "Y must have LoD, got none");
  if constexpr (kAs) return plan_expand_as(x.shape(), y.lod());
  return plan_expand(op, x.shape(), x.lod(), y.lod());
}

template <bool kAs> void infer(InferContext& c) {
  check_rank(c, "X", 2, kMaxRank);
  if (!c.runtime()) {
    out_rows(c, "Out", "X", kUnknown);
    c.out("Out").lod_level = kAs ? std::max(1, c.in("Y").lod_level) : std::max(c.in("X").lod_level, 0);
    return;
  }
  const LoD& y = lod_of(c, "Y");
  if (kAs) {
    plan_expand_as(c.in("X").shape, y);
    out_rows(c, "Out", "X", y[0].back());
    c.share_lod("Out", "Y");
    return;
  }
  static const LoD none;
  const LoD& x = c.in("X").lod ? lod_of(c, "X") : none;
  const Plan plan = plan_expand(c.op(), c.in("X").shape, x, y);
  int64_t rows = 0;
  for (int64_t i = 0; i < count(*plan.times); ++i) rows += plan.repeats(i) * plan.length(i);
  out_rows(c, "Out", "X", rows);
  if (x.empty()) return;
  Offsets made{0};
  made.reserve(static_cast<size_t>(plan.times->back() - plan.times->front()) + 1);
  for (int64_t i = 0; i < count(*plan.times); ++i) {
    for (int64_t k = 0; k < plan.repeats(i); ++k) made.push_back(made.back() + plan.length(i));
  }
  set_lod(c, "Out", one_level(std::move(made)));
}

template <bool kAs> Kernel forward(const KernelArgs& args) {
  const In x = args.in("X"), y = args.in("Y");
  const Out out = args.out("Out");
  const ir::Op& op = args.op();
  return [=](KernelContext& c) {
    const Plan plan = plan_of<kAs>(op, c[x], c[y]);
    const size_t row = static_cast<size_t>(c[x].row_elems()) * dtype_size(c[x].dtype());
    const char* from = static_cast<const char*>(c[x].raw());
    char* to = static_cast<char*>(c[out].mutable_raw());
    for (int64_t i = 0; i < count(*plan.times); ++i) {
      const size_t bytes = static_cast<size_t>(plan.length(i)) * row;
      for (int64_t k = 0; k < plan.repeats(i); ++k, to += bytes) copy_row(from, bytes, to);
      from += bytes;
    }
  };
}

template <class T, bool kAs> Kernel backward(const KernelArgs& args) {
  const In x = args.in("X"), y = args.in("Y"), dout = args.in("Out@GRAD");
  const Out dx = args.out("X@GRAD");
  const ir::Op& op = args.op();
  return [=](KernelContext& c) {
    if (!c.needs(dx)) return;
    const Plan plan = plan_of<kAs>(op, c[x], c[y]);
    const int64_t width = c[x].row_elems();
    const T* g = c[dout].data<T>();
    T* to = c[dx].mutable_data<T>();
    for (int64_t i = 0; i < count(*plan.times); ++i) {
      const int64_t n = plan.length(i) * width;
      std::fill(to, to + n, T{0});
      for (int64_t k = 0; k < plan.repeats(i); ++k, g += n) {
        for (int64_t j = 0; j < n; ++j) to[j] += g[j];
      }
      to += n;
    }
  };
}

// ---- on devices, where index tables replace the plan

// The row of X that each row of Out copies.
Offsets sources_of(const Plan& plan) {
  Offsets sources;
  int64_t first = 0;
  for (int64_t i = 0; i < count(*plan.times); first += plan.length(i++)) {
    for (int64_t k = 0; k < plan.repeats(i); ++k) {
      for (int64_t row = 0; row < plan.length(i); ++row) sources.push_back(first + row);
    }
  }
  return sources;
}

template <bool kAs> Kernel queued_forward(const KernelArgs& args) {
  return [kernels = device::KernelOfIds(device::stem_of_size("gather", dtype_size(args.dtype()))),
          upload = device::Upload(), x = args.in("X"), y = args.in("Y"), out = args.out("Out"),
          op = args.op()](const DeviceContext& c) mutable {
    device::IndexArgs a{};
    a.x = device::operand(c[x]);
    a.ids = upload.of(c, sources_of(plan_of<kAs>(op, c[x], c[y])));
    a.y = device::operand(c[out]);
    a.ids_count = c[out].rows();
    a.height = c[x].rows();
    a.width = c[x].row_elems();
    c.launch(kernels.of64(), a);
  };
}

// The rows of Out that copy each row of X: those of row r start at starts[r].
struct Repetitions {
  Offsets starts{0}, places;
  explicit Repetitions(const Plan& plan) {
    int64_t first = 0;
    for (int64_t i = 0; i < count(*plan.times); ++i) {
      for (int64_t row = 0; row < plan.length(i); ++row) {
        for (int64_t k = 0; k < plan.repeats(i); ++k) places.push_back(first + k * plan.length(i) + row);
        starts.push_back(static_cast<int64_t>(places.size()));
      }
      first += plan.repeats(i) * plan.length(i);
    }
  }
};

template <class T, bool kAs> Kernel queued_backward(const KernelArgs& args) {
  return [kernel = device::kernel_of<T>("sum_rows"), starts = device::Upload(), places = device::Upload(),
          x = args.in("X"), y = args.in("Y"), dout = args.in("Out@GRAD"), dx = args.out("X@GRAD"),
          op = args.op()](const DeviceContext& c) mutable {
    if (!c.needs(dx)) return;
    const Repetitions repetitions(plan_of<kAs>(op, c[x], c[y]));
    device::SumRowsArgs a{};
    a.x = device::operand(c[dout]);
    a.starts = starts.of(c, repetitions.starts);
    a.places = places.of(c, repetitions.places);
    a.y = device::operand(c[dx]);
    a.rows = c[x].rows();
    a.width = c[x].row_elems();
    c.launch(kernel, a);
  };
}

template <bool kAs> void gradient(OpDef& def) {
  def.doc("X@GRAD = the sums of Out@GRAD over the repetitions.").grad_lod("X@GRAD", "X");
  def.cpu<float, double, int32_t, int64_t>(
      []<class T>(TypeTag<T>, const KernelArgs& op) { return backward<T, kAs>(op); });
  def.device<float, double, float16, bfloat16, int32_t, int64_t>(
      []<class T>(TypeTag<T>, const KernelArgs& op) { return queued_backward<T, kAs>(op); });
}

AB_OP(sequence_expand)
    .doc(
        "Repeats row i of X, or sequence i if X has LoD, n times, where n is the length of sequence i of Y at level "
        "ref_level.")
    .in("X", "[rows, ...], with one LoD level or none")
    .in("Y", "the tensor whose LoD is used")
    .out("Out", "[repeated rows, ...], dtype of X; with LoD if X has it")
    .attr<int32_t>("ref_level", -1, "LoD level of Y; -1 is the innermost")
    .infer(infer<false>)
    .grad_reads({"X", "Y"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) { return forward<false>(op); })
    .device_any([](const KernelArgs& op) { return queued_forward<false>(op); });

AB_OP(sequence_expand_as)
    .doc("Repeats row i of X for each row of sequence i of Y. The result has the LoD of Y.")
    .in("X", "[S, ...]: a row for each of the S sequences of Y")
    .in("Y", "the tensor whose LoD is used; it has one level")
    .out("Out", "[rows of Y, ...], dtype of X")
    .infer(infer<true>)
    .grad_reads({"X", "Y"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) { return forward<true>(op); })
    .device_any([](const KernelArgs& op) { return queued_forward<true>(op); });

AB_GRAD(sequence_expand).with(gradient<false>);
AB_GRAD(sequence_expand_as).with(gradient<true>);

}  // namespace
}  // namespace anabranch::sequence::sequence_expand_op
