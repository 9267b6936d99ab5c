// Gathers the targets of priors: the rows that they match.
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::target_assign_op {
namespace {

void check_count(const InferContext& c, const char* slot, int64_t samples) {
  const auto have = static_cast<int64_t>(one_level_of(c, slot, false).size()) - 1;
  AB_CHECK(have >= samples, ShapeMismatch, "{} must have a sequence for each of the {} rows of MatchIndices, got {}",
           slot, samples, have);
}

void infer(InferContext& c) {
  check_rank(c, "X", 3, 3);
  check_rank(c, "MatchIndices", 2, 2);
  const Shape &x = c.in("X").shape, &match = c.in("MatchIndices").shape;
  for (const char* slot : {"MatchIndices", "NegIndices"}) {
    AB_CHECK(!c.has_in(slot) || c.in(slot).dtype == DType::kInt32, InvalidArgument, "{} must hold int32, got {}", slot,
             dtype_name(c.in(slot).dtype));
  }
  AB_CHECK(x[1] != 0 || match.numel() == 0, InvalidArgument, "X must have rows for the columns of MatchIndices, got {}",
           x.str());
  if (c.has_in("NegIndices")) {
    check_rank(c, "NegIndices", 2, 2);
    check_shape(c, "NegIndices", Shape{kUnknown, 1});
  }
  if (c.runtime()) {
    check_count(c, "X", match[0]);
    if (c.has_in("NegIndices")) check_count(c, "NegIndices", match[0]);
  }
  c.set_out("Out", Shape{match[0], match[1], x[2]}, c.in("X").dtype);
  c.set_out("OutWeight", Shape{match[0], match[1], 1}, DType::kFloat32);
}

template <class T> struct Targets {
  const T* x;
  int64_t rows, columns, priors, width;  // X [rows, columns, width]
  T filler;

  void assign(const int32_t* match, int64_t first, T* to, float* weights) const {
    for (int64_t j = 0; j < priors; ++j, to += width) {
      const int64_t row = match[j] >= 0 ? first + match[j] : -1;
      AB_CHECK(row < rows, InvalidArgument, "MatchIndices must name one of the {} rows of X, got {} at prior {}", rows,
               row, j);
      weights[j] = row >= 0 ? 1.0f : 0.0f;
      if (row >= 0) {
        std::copy_n(x + (row * columns + j % columns) * width, width, to);
      } else {
        std::fill(to, to + width, filler);
      }
    }
  }

  void clear(const int32_t* begin, const int32_t* end, T* to, float* weights) const {
    for (const int32_t* j = begin; j < end; ++j) {
      AB_CHECK(*j >= 0 && *j < priors, InvalidArgument,
               "NegIndices must name one of the {} columns of MatchIndices, got {}", priors, *j);
      std::fill(to + *j * width, to + (*j + 1) * width, filler);
      weights[*j] = 1.0f;
    }
  }
};

constexpr auto assigner = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [filler = static_cast<T>(op.attr<int32_t>("mismatch_value")), x = op.in("X"), match = op.in("MatchIndices"),
          neg = op.in("NegIndices"), out = op.out("Out"), weight = op.out("OutWeight")](KernelContext& c) {
    const Shape &s = c[x].shape(), &m = c[match].shape();
    const Targets<T> targets{c[x].data<T>(), s[0], s[1], m[1], s[2], filler};
    T* to = c[out].mutable_data<T>();
    float* weights = c[weight].mutable_data<float>();
    c.parallel_each(m[0], 1, [&, to, weights](int64_t n) {
      const auto i = static_cast<size_t>(n);
      T* rows = to + n * m[1] * s[2];
      targets.assign(c[match].data<int32_t>() + n * m[1], c[x].lod().back()[i], rows, weights + n * m[1]);
      if (!neg) return;
      const int32_t* negatives = c[neg].data<int32_t>();
      const std::vector<int64_t>& o = c[neg].lod().back();
      targets.clear(negatives + o[i], negatives + o[i + 1], rows, weights + n * m[1]);
    });
  };
};

AB_OP(target_assign)
    .doc(
        "Out[n, j] = X[first row of sequence n + MatchIndices[n, j], j modulo P], with weight 1, or mismatch_value "
        "with weight 0 if there is no match; mismatch_value with weight 1 at the NegIndices of sample n.")
    .in("X", "[rows, P, K] numbers with a sequence for each sample")
    .in("MatchIndices", "[samples, priors] int32: a row in the sample's sequence, or negative for none")
    .in_optional("NegIndices", "[number, 1] int32 with a sequence for each sample: indices of its negative priors")
    .out("Out", "[samples, priors, K]")
    .out("OutWeight", "[samples, priors, 1] float32")
    .attr<int32_t>("mismatch_value", 0, "value for priors without a match")
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("X")
    .cpu<float, double, int32_t>(assigner);

}  // namespace
}  // namespace anabranch::detection::target_assign_op
