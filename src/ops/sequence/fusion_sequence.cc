// Convolution and pooling of sequences fused with adjacent ops.
#include <algorithm>
#include <cmath>

#include "ops/declare/attr_checks.h"
#include "ops/sequence/context.h"
#include "ops/sequence/fusion.h"

namespace anabranch::sequence::fusion_sequence_op {
namespace {

constexpr auto convolution = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return
      [x = op.in("X"), filter = op.in("Filter"), bias = op.in("Bias"), out = op.out("Out"), context = Context(op.op()),
       gemm = std::make_shared<Gemm<T>>(), columns = std::make_shared<Tensor>()](KernelContext& c) {
        const int64_t rows = c[x].rows(), width = c[x].shape()[1], k = context.length * width, n = c[filter].shape()[1];
        T *taps = sized<T>(columns, rows, k), *to = c[out].mutable_data<T>();
        gather_context(c, offsets(c[x]), context, c[x].data<T>(), width, taps);
        gemm->run(c, {.m = rows, .n = n, .k = k}, taps, c[filter].data<T>(), to);
        const T* add = c[bias].data<T>();
        each_row(c, rows, n, [=](int64_t r) {
          T* row = to + r * n;
          for (int64_t j = 0; j < n; ++j) {
            const T v = row[j] + add[j];
            row[j] = v < 0 ? T{0} : v;
          }
        });
      };
};

AB_OP(fusion_seqconv_eltadd_relu)
    .doc("Out = relu(sequence_conv(X, Filter) + Bias).")
    .in("X", "[rows, width] float with LoD")
    .in("Filter", "[contextLength width, N]")
    .in("Bias", "[1, N] or [N]")
    .out("Out", "[rows, N] with the LoD of X")
    .out_named_only("ColMat", "unused")
    .attr<int32_t>("contextLength", 1, "number of rows in a window, at least 1", at_least("contextLength", 1))
    .attr<int32_t>("contextStart", 0, "first row of the window, relative to the current row")
    .attr<int32_t>("contextStride", 1, "1", within("contextStride", 1, 1))
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      for (const char* slot : {"X", "Filter"}) check_rank(c, slot, 2, 2);
      for (const char* slot : {"Filter", "Bias"}) check_same_dtype(c, slot, "X");
      const Shape &x = c.in("X").shape, &filter = c.in("Filter").shape;
      if (x[1] >= 0) check_shape(c, "Filter", Shape{x[1] * c.attr<int32_t>("contextLength"), kUnknown});
      check_numel(c, "Bias", filter[1]);
      if (c.runtime()) lod_of(c, "X");
      c.set_out("Out", Shape{x[0], filter[1]}, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .no_grad(kForInference)
    .cpu<float, double>(convolution);

// ---- pooling

enum class Over { kOne, kLength, kRoot };

Over over_of(const std::string& pooltype) {
  return pooltype == "SUM" ? Over::kOne : pooltype == "AVERAGE" ? Over::kLength : Over::kRoot;
}

// The sum of n rows, divided; zeros if n is 0.
template <class T> void pool(Over over, const T* rows, int64_t n, int64_t width, T* to) {
  std::fill(to, to + width, T{0});
  for (int64_t r = 0; r < n; ++r) add_to(rows + r * width, width, to);
  if (over == Over::kOne || n == 0) return;
  const T by = over == Over::kLength ? static_cast<T>(n) : std::sqrt(static_cast<T>(n));
  for (int64_t j = 0; j < width; ++j) to[j] /= by;
}

// Like continuous_value_model: the first two numbers, shows and clicks, are replaced by logarithms.
template <class T> void rate(T* row) {
  row[0] = std::log(row[0] + 1);
  row[1] = std::log(row[1] + 1) - row[0];
}

void infer_pools(InferContext& c) {
  const int n = c.n_in("X");
  AB_CHECK(n > 0, InvalidArgument, "X must have at least one tensor");
  const Meta& first = c.in("X");
  int64_t sequences = kUnknown, width = kUnknown;
  for (int i = 0; i < n; ++i) {
    const Meta& x = c.in("X", i);
    AB_CHECK(x.kind == VarKind::kLoDTensor && x.shape.rank() == 2 && x.dtype == first.dtype, InvalidArgument,
             "X must hold tensors [rows, width] of one dtype, got {} {} at index {}", dtype_name(x.dtype),
             x.shape.str(), i);
    AB_CHECK(width < 0 || x.shape[1] < 0 || width == x.shape[1], ShapeMismatch,
             "all X must have one width, got {} and {}", width, x.shape[1]);
    width = std::max(width, x.shape[1]);
    if (!c.runtime()) continue;
    const int64_t own = count(lod_of(c, "X", i).back());
    AB_CHECK(lod_of(c, "X", i).size() == 1 && (i == 0 || own == sequences), InvalidArgument,
             "all X must have the same number of sequences in one LoD level, got {} and {} in {} levels", sequences,
             own, lod_of(c, "X", i).size());
    sequences = own;
  }
  AB_CHECK(!c.has_in("CVM") || width < 0 || width >= 2, InvalidArgument, "X must have at least 2 columns, got {}",
           width);
  c.set_out("Out", Shape{sequences, width < 0 ? kUnknown : width * n}, first.dtype);
  if (!c.runtime()) {
    c.out("Out").lod_level = 1;
    return;
  }
  Offsets ones;
  for (int64_t s = 0; s <= sequences; ++s) ones.push_back(s);
  set_lod(c, "Out", sequences > 0 ? one_level(std::move(ones)) : nullptr);
}

template <class T> Kernel pools(const KernelArgs& op, bool rated) {
  return
      [rated, x = op.in("X"), out = op.out("Out"), over = over_of(op.attr<std::string>("pooltype"))](KernelContext& c) {
        const int64_t all = c[out].row_elems(), width = all / x.count;
        T* to = c[out].mutable_data<T>();
        each_row(c, c[out].rows(), all, [&](int64_t row) {
          const auto s = static_cast<size_t>(row);
          for (int i = 0; i < x.count; ++i) {
            const Offsets& o = offsets(c.at(x, i));
            T* own = to + row * all + i * width;
            pool(over, c.at(x, i).data<T>() + o[s] * width, o[s + 1] - o[s], width, own);
            if (rated) rate(own);
          }
        });
      };
}

void pool_attrs(OpDef& def) {
  def.attr<std::string>("pooltype", "SUM", "SUM, AVERAGE or SQRT", one_of("pooltype", {"SUM", "AVERAGE", "SQRT"}))
      .attr<int32_t>("axis", 1, "1", within("axis", 1, 1));
}

AB_OP(fusion_seqpool_concat)
    .doc("Out = sequence_pool of each X, concatenated.")
    .in_list("X", "[rows, width] float, of one width, with the same number of sequences")
    .out("Out", "[sequences, width * number of X], one row per sequence")
    .with(pool_attrs)
    .dtype_of_input("X")
    .infer(infer_pools)
    .no_grad(kForInference)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return pools<T>(op, false); });

AB_OP(fusion_seqpool_cvm_concat)
    .doc(
        "Out = continuous_value_model of sequence_pool of each X, concatenated: column 0 becomes log(x + 1), and "
        "column 1 its logarithm minus that of column 0.")
    .in_list("X", "[rows, width] float, of one width of at least 2, with the same number of sequences")
    .in("CVM", "ignored")
    .out("Out", "[sequences, width * number of X], one row per sequence")
    .with(pool_attrs)
    .attr<bool>("use_cvm", true, "true",
                [](bool v) { AB_CHECK(v, Unsupported, "use_cvm must be True: dropping columns is not supported"); })
    .dtype_of_input("X")
    .infer(infer_pools)
    .no_grad(kForInference)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return pools<T>(op, true); });

}  // namespace
}  // namespace anabranch::sequence::fusion_sequence_op
