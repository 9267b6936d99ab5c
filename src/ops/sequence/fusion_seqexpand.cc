// A fully connected layer over rows of sequences, concatenated with rows repeated per sequence.
#include <algorithm>

#include "ops/sequence/fusion.h"
#include "ops/sequence/spans.h"

namespace anabranch::sequence::fusion_seqexpand_op {
namespace {

void infer_expanded(InferContext& c) {
  const int n = c.n_in("X");
  AB_CHECK(n > 1, InvalidArgument, "X must have at least two tensors, got {}", n);
  const Meta& first = c.in("X");
  int64_t width = 0;
  const int64_t sequences = c.runtime() ? count(single_level(c, "X")[0]) : kUnknown;
  for (int i = 0; i < n; ++i) {
    const Meta& x = c.in("X", i);
    AB_CHECK(x.kind == VarKind::kLoDTensor && x.shape.rank() == 2 && x.dtype == first.dtype, InvalidArgument,
             "X must hold tensors [rows, width] of one dtype, got {} {} at index {}", dtype_name(x.dtype),
             x.shape.str(), i);
    AB_CHECK(i == 0 || sequences < 0 || x.shape[0] == sequences, ShapeMismatch,
             "X must have one row for each of the {} sequences of X[0], got {} at index {}", sequences, x.shape.str(),
             i);
    width = width < 0 || x.shape[1] < 0 ? kUnknown : width + x.shape[1];
  }
  check_rank(c, "FCWeight", 2, 2);
  check_same_dtype(c, "FCWeight", "X");
  check_shape(c, "FCWeight", Shape{width, kUnknown});
  const int64_t columns = c.in("FCWeight").shape[1];
  if (c.has_in("FCBias")) {
    check_same_dtype(c, "FCBias", "X");
    check_numel(c, "FCBias", columns);
  }
  c.set_out("Out", Shape{first.shape[0], columns}, first.dtype);
  c.share_lod("Out", "X");
}

template <class T> class Expanded {
 public:
  explicit Expanded(const KernelArgs& op)
      : x_(op.in("X")),
        weight_(op.in("FCWeight")),
        bias_(op.in("FCBias")),
        out_(op.out("Out")),
        act_(act_named(op.attr<std::string>("fc_activation"))) {
    for (int i = 0; i < x_.count; ++i) gemms_.push_back(std::make_shared<Gemm<T>>());
  }

  void operator()(KernelContext& c) {
    const Offsets& o = offsets(c[x_]);
    const int64_t n = c[weight_].shape()[1];
    T *to = c[out_].mutable_data<T>(), *sums = sized<T>(sums_, count(o), n), *part = sized<T>(part_, count(o), n);
    const T* w = c[weight_].data<T>();
    product(c, 0, w, to);
    std::fill(sums, sums + count(o) * n, T{0});
    for (int i = 1; i < x_.count; ++i) {
      w += c.at(x_, i - 1).shape()[1] * n;
      product(c, i, w, part);
      add_to(part, count(o) * n, sums);
    }
    for (int64_t s = 0; s < count(o); ++s) {
      if (bias_) add_to(c[bias_].data<T>(), n, sums + s * n);
      const auto k = static_cast<size_t>(s);
      for (int64_t r = o[k]; r < o[k + 1]; ++r) add_to(sums + s * n, n, to + r * n);
    }
    activate(act_, to, o.back() * n);
  }

 private:
  void product(KernelContext& c, int i, const T* w, T* to) {
    const Tensor& x = c.at(x_, i);
    gemms_[static_cast<size_t>(i)]->run(c, {.m = x.rows(), .n = c[weight_].shape()[1], .k = x.shape()[1]}, x.data<T>(),
                                        w, to);
  }
  In x_, weight_, bias_;
  Out out_;
  Act act_;
  std::shared_ptr<Tensor> sums_ = std::make_shared<Tensor>(), part_ = std::make_shared<Tensor>();
  std::vector<std::shared_ptr<Gemm<T>>> gemms_;
};

void declare_expanded() {
  OpDef& def = declare_op("fusion_seqexpand_concat_fc", __FILE__)
                   .doc("Out = f([X[0], the other X repeated for the rows of their sequence] FCWeight + FCBias).")
                   .in_list("X", "[rows, M] float with LoD; then tensors with one row per sequence")
                   .in("FCWeight", "[sum of the widths of X, N]")
                   .in_optional("FCBias", "[1, N] or [N]")
                   .out("Out", "[rows, N] with the LoD of X[0]")
                   .out_named_only("FCOut", "unused");
  act_attr(def, "fc_activation", "identity", "f")
      .dtype_of_input("X")
      .infer(infer_expanded)
      .no_grad(kForInference)
      .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return Expanded<T>(op); });
}

AB_OPS(declare_expanded);

}  // namespace
}  // namespace anabranch::sequence::fusion_seqexpand_op
