// One step of a gated recurrent unit.
#include "ops/sequence/gru_step.h"
#include "ops/sequence/queued_gru.h"

namespace anabranch::sequence::gru_unit_op {
namespace {

// Activations are numbered: 0 identity, 1 sigmoid, 2 tanh, 3 relu.
void attrs(OpDef& def) {
  const auto check = [](int32_t v) {
    AB_CHECK(v >= 0 && v <= 3, InvalidArgument, "activation must be 0 to 3, got {}", v);
  };
  def.attr<int32_t>("activation", 2, "activation of the candidate: 0 identity, 1 sigmoid, 2 tanh, 3 relu", check)
      .attr<int32_t>("gate_activation", 1, "activation of the gates, likewise", check)
      .attr<bool>("origin_mode", false, "the update gate weights the old state instead of the candidate");
}

int64_t check_unit(const InferContext& c) {
  for (const char* slot : {"Input", "HiddenPrev", "Weight"}) {
    check_tensor(c, slot);
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "Input");
  }
  const Shape& h = c.in("HiddenPrev").shape;
  const int64_t d = h[1], wide = d == kUnknown ? kUnknown : 3 * d;
  check_shape(c, "Input", Shape{h[0], wide});
  check_shape(c, "Weight", Shape{d, wide});
  check_bias(c);
  return d;
}

GruOptions options_of(const ir::Op& op) {
  return {static_cast<Act>(op.attr<int32_t>("gate_activation")), static_cast<Act>(op.attr<int32_t>("activation")),
          op.attr<bool>("origin_mode")};
}

template <class T> Kernel forward(const KernelArgs& op) {
  const In x = op.in("Input"), before = op.in("HiddenPrev"), weight = op.in("Weight"), bias = op.in("Bias");
  const Out gate = op.out("Gate"), reset = op.out("ResetHiddenPrev"), hidden = op.out("Hidden");
  return [=, step = GruStep<T>(options_of(op.op()))](KernelContext& c) {
    const int64_t n = c[before].rows(), d = c[before].row_elems();
    const T* from = c[x].data<T>();
    T* gates = c[gate].template mutable_data<T>();
    std::copy(from, from + n * 3 * d, gates);
    if (bias) each_row(c, n, 3 * d, [&](int64_t k) { add_to(c[bias].template data<T>(), 3 * d, gates + k * 3 * d); });
    step.forward(c, n, d, c[weight].data<T>(), c[before].data<T>(), gates, c[reset].template mutable_data<T>(),
                 c[hidden].template mutable_data<T>());
  };
}

template <class T> Kernel backward(const KernelArgs& op) {
  const In before = op.in("HiddenPrev"), weight = op.in("Weight"), gate = op.in("Gate"),
           reset = op.in("ResetHiddenPrev"), dhidden = op.in("Hidden@GRAD");
  const Out dx = op.out("Input@GRAD"), dbefore = op.out("HiddenPrev@GRAD"), dweight = op.out("Weight@GRAD"),
            dbias = op.out("Bias@GRAD");
  return [=, step = GruStep<T>(options_of(op.op())), gate_rows = std::make_shared<Tensor>(),
          before_rows = std::make_shared<Tensor>()](KernelContext& c) {
    const int64_t n = c[before].rows(), d = c[before].row_elems();
    T *dgates = sized<T>(gate_rows, n, 3 * d), *dh = sized<T>(before_rows, n, d);
    std::fill(dh, dh + n * d, T{0});
    step.backward(c, n, d, c[weight].data<T>(), c[before].data<T>(), c[gate].data<T>(), c[dhidden].data<T>(), dgates,
                  dh);
    if (c.needs(dx)) std::copy(dgates, dgates + n * 3 * d, c[dx].template mutable_data<T>());
    if (c.needs(dbefore)) std::copy(dh, dh + n * d, c[dbefore].template mutable_data<T>());
    if (c.needs(dbias)) {
      T* to = c[dbias].template mutable_data<T>();
      std::fill(to, to + 3 * d, T{0});
      add_columns(c, dgates, n, 3 * d, to);
    }
    if (!c.needs(dweight)) return;
    step.backward_weight(c, n, d, c[before].data<T>(), c[reset].data<T>(), dgates,
                         c[dweight].template mutable_data<T>());
  };
}

// ---- on devices, like gru with one step

template <class T> class QueuedForward {
 public:
  explicit QueuedForward(const KernelArgs& op)
      : x_(op.in("Input")),
        before_(op.in("HiddenPrev")),
        weight_(op.in("Weight")),
        bias_(op.in("Bias")),
        gate_(op.out("Gate")),
        reset_(op.out("ResetHiddenPrev")),
        hidden_(op.out("Hidden")),
        gru_(options_of(op.op())) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    const int64_t n = c[before_].rows(), d = c[before_].row_elems();
    steps_.cut_dense(1, n);
    const Slab<T> gates = slab<T>(c[gate_]);
    steps_.gather(c, slab<T>(c, x_), 3 * d, gates, slab<T>(c, bias_));
    gru_.forward(c, d, GruWeights<T>::apart(slab<T>(c, weight_), d),
                 {steps_.order(), gates, slab<T>(c[reset_]), slab<T>(c[hidden_]), slab<T>(c, before_)});
  }

 private:
  In x_, before_, weight_, bias_;
  Out gate_, reset_, hidden_;
  QueuedSteps<T> steps_;
  QueuedGru<T> gru_;
};

template <class T> class QueuedBackward {
 public:
  explicit QueuedBackward(const KernelArgs& op)
      : before_(op.in("HiddenPrev")),
        weight_(op.in("Weight")),
        gate_(op.in("Gate")),
        reset_(op.in("ResetHiddenPrev")),
        dhidden_(op.in("Hidden@GRAD")),
        dx_(op.out("Input@GRAD")),
        dbefore_(op.out("HiddenPrev@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dbias_(op.out("Bias@GRAD")),
        gru_(options_of(op.op())) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    const int64_t n = c[before_].rows(), d = c[before_].row_elems();
    steps_.cut_dense(1, n);
    const Slab<T> dgates = c.needs(dx_) ? slab<T>(c, dx_) : room_for<T>(c, gate_rows_, n, 3 * d);
    const Slab<T> dbefore = c.needs(dbefore_) ? slab<T>(c, dbefore_) : room_for<T>(c, before_rows_, n, d);
    const Slab<T> dstate = room_for<T>(c, state_rows_, n, d);
    const Slab<const T> before = slab<T>(c, before_);
    steps_.gather(c, slab<T>(c, dhidden_), d, dstate);
    fill_zero(c, dbefore);
    const auto w = GruWeights<T>::apart(slab<T>(c, weight_), d);
    gru_.backward(c, d, w,
                  {.order = steps_.order(),
                   .gates = slab<T>(c, gate_),
                   .before = before,
                   .dstates = dstate,
                   .dgates = dgates,
                   .dfirst = dbefore});
    if (c.needs(dbias_)) steps_.column_sums(c, dgates, 3 * d, 3 * d, slab<T>(c, dbias_));
    if (!c.needs(dweight_)) return;
    gru_.backward_weight(c, n, d, before, slab<T>(c, reset_), dgates, w, slab<T>(c, dweight_));
  }

 private:
  In before_, weight_, gate_, reset_, dhidden_;
  Out dx_, dbefore_, dweight_, dbias_;
  QueuedSteps<T> steps_;
  QueuedGru<T> gru_;
  device::Scratch gate_rows_, before_rows_, state_rows_;
};

AB_OP(gru_unit)
    .doc("Hidden = one step of gru for each row, from HiddenPrev and Input.")
    .in("Input", "[N, 3 D] float: update gate, reset gate, candidate")
    .in("HiddenPrev", "[N, D]")
    .in("Weight", "[D, 3 D], like Weight of gru")
    .in_optional("Bias", "[1, 3 D]")
    .out_intermediate("Gate", "[N, 3 D], gates and candidate")
    .out_intermediate("ResetHiddenPrev", "[N, D], reset gate times HiddenPrev")
    .out("Hidden", "[N, D]")
    .with(attrs)
    .infer([](InferContext& c) {
      const int64_t d = check_unit(c);
      const DType dtype = c.in("Input").dtype;
      c.set_out("Gate", c.in("Input").shape, dtype);
      for (const char* slot : {"ResetHiddenPrev", "Hidden"}) c.set_out(slot, Shape{c.in("Input").shape[0], d}, dtype);
    })
    .grad_reads({"Input", "HiddenPrev", "Weight", "Bias"}, {"Gate", "ResetHiddenPrev"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return QueuedForward<typename decltype(tag)::type>(op);
    });

AB_GRAD(gru_unit)
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return QueuedBackward<typename decltype(tag)::type>(op);
    });

}  // namespace
}  // namespace anabranch::sequence::gru_unit_op
