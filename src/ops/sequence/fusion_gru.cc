// Gated recurrent units with the product that computes their input.
#include "ops/sequence/fusion.h"
#include "ops/sequence/gru_step.h"

namespace anabranch::sequence::fusion_gru_op {
namespace {

void infer(InferContext& c) {
  const int64_t wide = check_product(c, "X", "WeightX");
  check_tensor(c, "WeightH");
  check_rank(c, "WeightH", 2, 2);
  check_same_dtype(c, "WeightH", "X");
  const int64_t d = c.in("WeightH").shape[0];
  check_shape(c, "WeightH", Shape{d, d == kUnknown ? kUnknown : 3 * d});
  AB_CHECK(wide == kUnknown || d == kUnknown || wide == 3 * d, ShapeMismatch, "WeightX must have {} columns, got {}",
           3 * d, c.in("WeightX").shape.str());
  if (c.has_in("Bias")) {
    check_tensor(c, "Bias");
    check_same_dtype(c, "Bias", "X");
    check_numel(c, "Bias", wide);
  }
  if (c.runtime()) lod_of(c, "X");
  check_first(c, "H0", "X", d);
  c.set_out("Hidden", Shape{c.in("X").shape[0], d}, c.in("X").dtype);
  c.share_lod("Hidden", "X");
}

template <class T> class Fused {
 public:
  explicit Fused(const KernelArgs& op)
      : x_(op.in("X")),
        h0_(op.in("H0")),
        by_x_(op.in("WeightX")),
        by_h_(op.in("WeightH")),
        bias_(op.in("Bias")),
        hidden_(op.out("Hidden")),
        reverse_(op.attr<bool>("is_reverse")),
        step_({act_named(op.attr<std::string>("gate_activation")), act_named(op.attr<std::string>("activation")),
               op.attr<bool>("origin_mode")}) {}

  void operator()(KernelContext& c) {
    const int64_t rows = c[x_].rows(), d = c[by_h_].rows(), wide = 3 * d;
    steps_.cut(offsets(c[x_]), reverse_);
    T *products = sized<T>(products_, rows, wide), *gates = sized<T>(gates_, rows, wide);
    gemm_->run(c, {.m = rows, .n = wide, .k = c[x_].shape()[1]}, c[x_].template data<T>(), c[by_x_].template data<T>(),
               products);
    if (bias_) {
      const T* bias = c[bias_].template data<T>();
      each_row(c, rows, wide, [&](int64_t r) { add_to(bias, wide, products + r * wide); });
    }
    steps_.gather(c, products, wide, gates);
    const T* before = steps_.template first<T>(c, h0_, d, first_);
    T *states = sized<T>(states_, rows, d), *reset = sized<T>(reset_, rows, d);
    for (int64_t t = 0; t < steps_.count(); ++t) {
      const int64_t at = steps_.begin(t);
      step_.forward(c, steps_.rows(t), d, c[by_h_].template data<T>(), before, gates + at * wide, reset + at * d,
                    states + at * d);
      before = states + at * d;
    }
    steps_.scatter(c, states, d, c[hidden_].template mutable_data<T>());
  }

 private:
  In x_, h0_, by_x_, by_h_, bias_;
  Out hidden_;
  bool reverse_;
  GruStep<T> step_;
  Steps steps_;
  std::shared_ptr<Tensor> products_ = std::make_shared<Tensor>(), gates_ = std::make_shared<Tensor>(),
                          states_ = std::make_shared<Tensor>(), reset_ = std::make_shared<Tensor>(),
                          first_ = std::make_shared<Tensor>();
  std::shared_ptr<Gemm<T>> gemm_ = std::make_shared<Gemm<T>>();
};

void declare() {
  OpDef& def = declare_op("fusion_gru", __FILE__)
                   .doc("Like gru, with the input X WeightX + Bias.")
                   .source("https://arxiv.org/abs/1406.1078")
                   .in("X", "[rows, M] float with LoD")
                   .in_optional("H0", "[sequences, D], the state before each sequence; zeros if not given")
                   .in("WeightX", "[M, 3 D]: update gate, reset gate, candidate")
                   .in("WeightH", "[D, 3 D], like Weight of gru")
                   .in_optional("Bias", "[1, 3 D]");
  names_only(def, {"ReorderedH0", "XX", "BatchedInput", "BatchedOut"});
  def.out("Hidden", "[rows, D], with the LoD of X");
  act_attr(def, "activation", "tanh", "activation of the candidate");
  act_attr(def, "gate_activation", "sigmoid", "activation of the gates");
  def.attr<bool>("is_reverse", false, "processes each sequence from its last row to its first")
      .attr<bool>("origin_mode", false, "the update gate weights the old state instead of the candidate")
      .ignores("use_seq", true)
      .dtype_of_input("X")
      .infer(infer)
      .no_grad(kForInference)
      .cpu<float, double>(
          [](auto tag, const KernelArgs& op) -> Kernel { return Fused<typename decltype(tag)::type>(op); });
}

AB_OPS(declare);

}  // namespace
}  // namespace anabranch::sequence::fusion_gru_op
