// An LSTM over a dense batch [steps, batch, width] as one op, made by the pass fuse_recurrent of a block that is run
// for each step: the products of x are one for all steps, and so are the gradients of x and of the weights.
#include <algorithm>
#include <memory>
#include <numeric>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/outputs.h"
#include "ops/sequence/lstm_panels.h"

namespace anabranch::sequence {
namespace {

// Weight holds rows for x and rows for the state, in the order that state_first says.
struct Extents {
  int64_t steps, batch, wide, d;
  bool state_first;
  Extents(const KernelContext& c, In x, In h0, bool state_rows_first)
      : steps(c[x].shape()[0]),
        batch(c[x].shape()[1]),
        wide(c[x].shape()[2]),
        d(c[h0].row_elems()),
        state_first(state_rows_first) {}
  int64_t rows() const { return steps * batch; }
  template <class T> T* of_x(T* weight) const { return weight + (state_first ? d * 4 * d : 0); }
  template <class T> T* of_state(T* weight) const { return weight + (state_first ? 0 : wide * 4 * d); }
};

GateOrder order_of(const ir::Op& op) {
  GateOrder order{};
  const auto& given = op.attr<std::vector<int32_t>>("order");
  AB_CHECK(given.size() == 4, InvalidArgument, "order must have 4 places, got {}", given.size());
  std::array<bool, 4> taken{};
  for (size_t g = 0; g < 4; ++g) {
    const int place = given[g];
    AB_CHECK(place >= 0 && place < 4 && !taken[static_cast<size_t>(place)], InvalidArgument,
             "order must hold each of 0, 1, 2 and 3, got {} at {}", place, g);
    taken[static_cast<size_t>(place)] = true;
    order[g] = place;
  }
  return order;
}

LstmPanels::Weights weights_of(const float* state, int64_t d, const GateOrder& order) {
  return {state, d, order, {Act::kSigmoid, Act::kTanh, Act::kTanh, nullptr, nullptr, nullptr, 0.0f}};
}

void check(const InferContext& c) {
  for (const char* slot : {"X", "H0", "C0", "Weight"}) {
    check_tensor(c, slot);
    check_same_dtype(c, slot, "X");
  }
  order_of(c.op());
  check_rank(c, "X", 3, 3);
  check_rank(c, "H0", 2, 2);
  check_rank(c, "Weight", 2, 2);
  const Shape &x = c.in("X").shape, &h = c.in("H0").shape;
  AB_CHECK(x[0] != 0, InvalidArgument, "X must have at least one step, got {}", x.str());
  check_shape(c, "H0", Shape{x[1], kUnknown});
  check_shape(c, "C0", Shape{x[1], h[1]});
  const int64_t gates = h[1] == kUnknown ? kUnknown : 4 * h[1];
  check_shape(c, "Weight", Shape{h[1] == kUnknown || x[2] == kUnknown ? kUnknown : h[1] + x[2], gates});
  if (c.has_in("Bias")) {
    check_same_dtype(c, "Bias", "X");
    check_shape(c, "Bias", Shape{gates});
  }
  if (c.has_in("ForgetBias")) {
    check_same_dtype(c, "ForgetBias", "X");
    check_shape(c, "ForgetBias", Shape{1});
  }
}

void add_to_forget(KernelContext& c, const Extents& e, int place, float number, float* gates) {
  each_row(c, e.rows(), e.d, [&](int64_t r) {
    float* g = gates + r * 4 * e.d + place * e.d;
    for (int64_t j = 0; j < e.d; ++j) g[j] += number;
  });
}

class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : x_(op.in("X")),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        weight_(op.in("Weight")),
        bias_(op.in("Bias")),
        forget_(op.in("ForgetBias")),
        hidden_(op.out("Hidden")),
        cell_(op.out("Cell")),
        gates_(op.out("Gates")),
        state_first_(op.attr<bool>("state_first")),
        order_(order_of(op.op())) {}

  void operator()(KernelContext& c) {
    const Extents e(c, x_, h0_, state_first_);
    if (e.rows() == 0 || e.d == 0) return;
    const float* w = c[weight_].data<float>();
    auto* gates = c[gates_].mutable_data<float>();
    by_input_->run(c, {.m = e.rows(), .n = 4 * e.d, .k = e.wide}, c[x_].data<float>(), e.of_x(w), gates,
                   {bias_ ? c[bias_].data<float>() : nullptr, nullptr});
    if (forget_) add_to_forget(c, e, order_[2], *c[forget_].data<float>(), gates);
    steps_.cut_dense(e.steps, e.batch);
    panels_->forward(c, steps_, weights_of(e.of_state(w), e.d, order_),
                     {gates, c[h0_].data<float>(), c[c0_].data<float>(), c[hidden_].mutable_data<float>(),
                      c[cell_].mutable_data<float>()});
  }

 private:
  In x_, h0_, c0_, weight_, bias_, forget_;
  Out hidden_, cell_, gates_;
  bool state_first_;
  GateOrder order_;
  Steps steps_;
  std::shared_ptr<LstmPanels> panels_ = std::make_shared<LstmPanels>();
  std::shared_ptr<Gemm<float>> by_input_ = std::make_shared<Gemm<float>>();
};

class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : x_(op.in("X")),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        weight_(op.in("Weight")),
        hidden_(op.in("Hidden")),
        cell_(op.in("Cell")),
        gates_(op.in("Gates")),
        dhidden_(op.in("Hidden@GRAD")),
        dcell_(op.in("Cell@GRAD")),
        dx_(op.out("X@GRAD")),
        dh0_(op.out("H0@GRAD")),
        dc0_(op.out("C0@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dbias_(op.out("Bias@GRAD")),
        dforget_(op.out("ForgetBias@GRAD")),
        state_first_(op.attr<bool>("state_first")),
        order_(order_of(op.op())) {}

  void operator()(KernelContext& c) {
    const Extents e(c, x_, h0_, state_first_);
    steps_.cut_dense(e.steps, e.batch);
    float* dgates = sized<float>(dgate_rows_, e.rows(), 4 * e.d);
    run(c, e, dgates);
    give(c, e, dgates);
  }

 private:
  // The sum of the gradients that are given.
  static float* given(KernelContext& c, In slot, const Extents& e, const std::shared_ptr<Tensor>& rows) {
    float* to = sized<float>(rows, e.rows(), e.d);
    if (slot) {
      std::copy_n(c[slot].data<float>(), e.rows() * e.d, to);
    } else {
      std::fill_n(to, e.rows() * e.d, 0.0f);
    }
    for (int i = 1; i < slot.count; ++i) add_to(c.at(slot, i).data<float>(), e.rows() * e.d, to);
    return to;
  }

  void run(KernelContext& c, const Extents& e, float* dgates) {
    const float* dhidden = dhidden_.count == 1 ? c[dhidden_].data<float>() : given(c, dhidden_, e, dhidden_rows_);
    float* dcells = given(c, dcell_, e, dcell_rows_);
    float* dfirst = c.wants(dc0_) ? c[dc0_].mutable_data<float>() : sized<float>(dfirst_rows_, e.batch, e.d);
    std::fill_n(dfirst, e.batch * e.d, 0.0f);
    panels_->backward(c, steps_, weights_of(e.of_state(c[weight_].data<float>()), e.d, order_),
                      {.gates = c[gates_].data<float>(),
                       .cells = c[cell_].data<float>(),
                       .first_cell = c[c0_].data<float>(),
                       .dhiddens = dhidden,
                       .dcells = dcells,
                       .dgates = dgates,
                       .dfirst_cell = dfirst,
                       .dfirst_hidden = c.wants(dh0_) ? c[dh0_].mutable_data<float>() : nullptr});
  }

  void give(KernelContext& c, const Extents& e, const float* dgates) {
    if (c.wants(dx_)) {
      to_input_->run(c, {.m = e.rows(), .n = e.wide, .k = 4 * e.d, .trans_b = true}, dgates,
                     e.of_x(c[weight_].data<float>()), c[dx_].mutable_data<float>());
    }
    if (c.wants(dweight_)) {
      auto* to = c[dweight_].mutable_data<float>();
      by_input_->run(c, {.m = e.wide, .n = 4 * e.d, .k = e.rows(), .trans_a = true}, c[x_].data<float>(), dgates,
                     e.of_x(to));
      float* before = sized<float>(before_rows_, e.rows(), e.d);
      steps_.previous(c[hidden_].data<float>(), c[h0_].data<float>(), e.d, before);
      by_state_->run(c, {.m = e.d, .n = 4 * e.d, .k = e.rows(), .trans_a = true}, before, dgates, e.of_state(to));
    }
    float* sums = sized<float>(sum_rows_, 1, 4 * e.d);
    if (c.wants(dbias_)) sums = c[dbias_].mutable_data<float>();
    if (!c.wants(dbias_) && !c.wants(dforget_)) return;
    std::fill_n(sums, 4 * e.d, 0.0f);
    add_columns(dgates, e.rows(), 4 * e.d, sums);
    if (!c.wants(dforget_)) return;
    const float* forget = sums + order_[2] * e.d;
    *c[dforget_].mutable_data<float>() = std::accumulate(forget, forget + e.d, 0.0f);
  }

  static std::shared_ptr<Tensor> rows() { return std::make_shared<Tensor>(); }

  In x_, h0_, c0_, weight_, hidden_, cell_, gates_, dhidden_, dcell_;
  Out dx_, dh0_, dc0_, dweight_, dbias_, dforget_;
  bool state_first_;
  GateOrder order_;
  Steps steps_;
  std::shared_ptr<Tensor> dgate_rows_ = rows(), dhidden_rows_ = rows(), dcell_rows_ = rows(), dfirst_rows_ = rows(),
                          before_rows_ = rows(), sum_rows_ = rows();
  std::shared_ptr<LstmPanels> panels_ = std::make_shared<LstmPanels>();
  std::shared_ptr<Gemm<float>> to_input_ = std::make_shared<Gemm<float>>(), by_input_ = std::make_shared<Gemm<float>>(),
                               by_state_ = std::make_shared<Gemm<float>>();
};

AB_OP(lstm_steps)
    .doc(
        "Gates of step t: [x[t], h[t-1]] Weight + Bias; c[t] = sigmoid(forget + ForgetBias) c[t-1] + sigmoid(input) "
        "tanh(candidate), h[t] = sigmoid(output) tanh(c[t]).")
    .source("https://arxiv.org/abs/1308.0850")
    .in("X", "[steps, batch, I] float32")
    .in("H0", "[batch, D], h before step 0")
    .in("C0", "[batch, D], c before step 0")
    .in("Weight", "[I + D, 4 D]: the rows of x, then those of h; the other way with state_first")
    .in_optional("Bias", "[4 D]")
    .in_optional("ForgetBias", "[1]")
    .out("Hidden", "[steps, batch, D], h")
    .out("Cell", "[steps, batch, D], c")
    .out("Gates", "[steps, batch, 4 D], candidate and gates, for the gradient")
    .attr<bool>("state_first", false, "the rows of h come first")
    .attr<std::vector<int32_t>>("order", {1, 0, 2, 3}, "places of candidate, input, forget and output gate")
    .effects(kEngineOnly)
    .infer([](InferContext& c) {
      check(c);
      const Shape& x = c.in("X").shape;
      const int64_t d = c.in("H0").shape[1];
      c.set_out("Hidden", Shape{x[0], x[1], d}, c.in("X").dtype);
      c.set_out("Cell", Shape{x[0], x[1], d}, c.in("X").dtype);
      c.set_out("Gates", Shape{x[0], x[1], d == kUnknown ? kUnknown : 4 * d}, c.in("X").dtype);
    })
    .no_grad("made when gradients are there already")
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Forward(op); });

AB_GRAD(lstm_steps)
    .doc("Gradients of lstm_steps; those of X and Weight are one product over all steps each.")
    .in("X", "as of lstm_steps")
    .in("H0", "as of lstm_steps")
    .in("C0", "as of lstm_steps")
    .in("Weight", "as of lstm_steps")
    .in_optional("Bias", "as of lstm_steps")
    .in_optional("ForgetBias", "as of lstm_steps")
    .in("Hidden", "of lstm_steps")
    .in("Cell", "of lstm_steps")
    .in("Gates", "of lstm_steps")
    .in_optional_list("Hidden@GRAD", "as Hidden; they are added up, and zeros when there are none")
    .in_optional_list("Cell@GRAD", "as Cell; they are added up, and zeros when there are none")
    .out_optional("X@GRAD", "as X")
    .out_optional("H0@GRAD", "as H0")
    .out_optional("C0@GRAD", "as C0")
    .out_optional("Weight@GRAD", "as Weight")
    .out_optional("Bias@GRAD", "as Bias")
    .out_optional("ForgetBias@GRAD", "as ForgetBias")
    .dtype_of_input("X")
    .effects(kEngineOnly)
    .infer([](InferContext& c) {
      check(c);
      const Shape& x = c.in("X").shape;
      const int64_t d = c.in("H0").shape[1];
      for (const char* slot : {"Hidden", "Cell"}) {
        check_same_dtype(c, slot, "X");
        check_shape(c, slot, Shape{x[0], x[1], d});
      }
      for (const char* slot : {"Hidden@GRAD", "Cell@GRAD"}) {
        for (int i = 0; i < c.n_in(slot); ++i) {
          AB_CHECK(c.in(slot, i).dtype == c.in("X").dtype && compatible(c.in(slot, i).shape, Shape{x[0], x[1], d}),
                   ShapeMismatch, "{} must be as Hidden, got {}", slot, c.in(slot, i).shape.str());
        }
      }
      check_shape(c, "Gates", Shape{x[0], x[1], d == kUnknown ? kUnknown : 4 * d});
      for (const char* slot : {"X", "H0", "C0", "Weight", "Bias", "ForgetBias"}) {
        grad_as(c, std::string(slot) + "@GRAD", slot);
      }
    })
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Backward(op); });

}  // namespace
}  // namespace anabranch::sequence
