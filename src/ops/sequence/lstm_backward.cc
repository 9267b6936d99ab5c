#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/flags.h"
#include "ops/kernels/workspace.h"
#include "ops/sequence/lstm.h"

namespace anabranch::sequence {
namespace {

// No gradient where a value was clipped.
template <class T> void clip_grad(T limit, const T* x, T* g, int64_t n) {
  if (limit <= 0) return;
  for (int64_t j = 0; j < n; ++j) {
    if (std::abs(x[j]) >= limit) g[j] = 0;
  }
}

// Fluid 1.8.5 computes eight cells at a time where their number is a multiple of eight. The first of the eight decides
// whether all have a gradient, and without a clip none has.
constexpr int64_t kFluidBlock = 8;
void clip_grad_of_fluid(float limit, const float* x, float* g, int64_t n) {
  for (int64_t j = 0; j < n; j += kFluidBlock) {
    if (limit <= 0 || std::abs(x[j]) >= limit) std::fill_n(g + j, kFluidBlock, 0.0f);
  }
}

constexpr int64_t kChangeGrain = 1 << 16;  // multiplications that are worth a task

template <class T> class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : with_(op.op()),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        weight_(op.in("Weight")),
        projection_(with_.projected ? op.in("ProjWeight") : In{}),
        bias_(op.in("Bias")),
        result_(op.in(name())),
        dresult_(op.in(std::string(name()) + "@GRAD")),
        dcell_(op.in("Cell@GRAD")),
        gate_(op.in("BatchGate")),
        cells_(op.in("BatchCellPreAct")),
        states_(with_.projected ? op.in("BatchHidden") : In{}),
        dx_(op.out("Input@GRAD")),
        dh0_(op.out("H0@GRAD")),
        dc0_(op.out("C0@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dprojection_(with_.projected ? op.out("ProjWeight@GRAD") : Out{}),
        dbias_(op.out("Bias@GRAD")) {}

  void operator()(KernelContext& c) {
    p_ = c[weight_].rows();
    d_ = c[weight_].row_elems() / 4;
    rows_ = c[result_].rows();
    steps_.cut(offsets(c[result_]), with_.reverse);
    h_first_ = steps_.first<T>(c, h0_, p_, h0_rows_);
    c_first_ = steps_.first<T>(c, c0_, d_, c0_rows_);
    Workspace room;
    dgates_ = room.get<T>(rows_ * 4 * d_);
    dh_first_ = zeros(dh0_rows_, p_);
    dc_first_ = zeros(dc0_rows_, d_);
    run(c, room);
    give(c, room);
  }

 private:
  const char* name() const { return with_.projected ? "Projection" : "Hidden"; }

  void run(KernelContext& c, Workspace& room) {
    as_fluid_ = std::is_same_v<T, float> && Flags::exact_fluid() && d_ % kFluidBlock == 0;
    if constexpr (std::is_same_v<T, float>) {
      if (!with_.projected && !as_fluid_) {
        dcells_ = dcell_ ? given_cells(c, room) : room.get<T>(2 * steps_.widest() * d_);
        const auto weights = panel_weights(with_, c[weight_].template data<T>(), c[bias_].template data<T>(), d_);
        return panels_->backward(c, steps_, weights,
                                 {.gates = c[gate_].template data<T>(),
                                  .cells = c[cells_].template data<T>(),
                                  .first_cell = c_first_,
                                  .dhiddens = c[dresult_].template data<T>(),
                                  .dcells = dcells_,
                                  .two_steps = !dcell_,
                                  .dgates = dgates_,
                                  .dfirst_cell = dc_first_,
                                  .dfirst_hidden = h_first_ ? dh_first_ : nullptr});
      }
    }
    carried_ = room.get<T>(rows_ * p_);
    steps_.gather(c, c[result_].template data<T>(), p_, carried_);
    dcarried_ = room.get<T>(rows_ * p_);
    steps_.gather(c, c[dresult_].template data<T>(), p_, dcarried_);
    dcells_ = given_cells(c, room);
    for (int64_t t = steps_.count() - 1; t >= 0; --t) step(c, t);
  }

  // Zeros if there is none.
  T* given_cells(KernelContext& c, Workspace& room) const {
    T* to = room.get<T>(rows_ * d_);
    if (dcell_) {
      steps_.gather(c, c[dcell_].template data<T>(), d_, to);
    } else {
      std::fill_n(to, rows_ * d_, T{0});
    }
    return to;
  }

  T* zeros(const std::shared_ptr<Tensor>& rows, int64_t width) const {
    T* to = sized<T>(rows, steps_.widest(), width);
    std::fill(to, to + steps_.widest() * width, T{0});
    return to;
  }

  void step(KernelContext& c, int64_t t) {
    const int64_t n = steps_.rows(t), at = steps_.begin(t), d = d_, past = t > 0 ? steps_.begin(t - 1) : 0;
    const T* dhidden = dcarried_ + at * p_;
    if (with_.projected) {
      clip_grad(static_cast<T>(with_.proj_clip), carried_ + at * p_, dcarried_ + at * p_, n * p_);
      act_grad(with_.projection, carried_ + at * p_, dcarried_ + at * p_, n * p_);
      T* part = sized<T>(hidden_part_, n, d);
      by_projection_->run(c, {.m = n, .n = d, .k = p_, .trans_b = true}, dhidden, c[projection_].template data<T>(),
                          part);
      dhidden = part;
    }
    const T* before = t > 0 ? c[cells_].template data<T>() + past * d : c_first_;
    T* dbefore = t > 0 ? dcells_ + past * d : dc_first_;
    const Peepholes<T> peep(c[bias_].template data<T>(), d, with_.peepholes);
    T* scratch = sized<T>(scratch_, n, 2 * d);
    each_row(c, n, 4 * d, [&](int64_t k) {
      cell_row(peep, c[gate_].template data<T>() + (at + k) * 4 * d, c[cells_].template data<T>() + (at + k) * d,
               before ? before + k * d : nullptr, dhidden + k * d, scratch + k * 2 * d, dcells_ + (at + k) * d,
               dgates_ + (at + k) * 4 * d, dbefore + k * d);
    });
    if (t == 0 && !h_first_) return;
    T *part = sized<T>(state_part_, n, p_), *dstate = t > 0 ? dcarried_ + past * p_ : dh_first_;
    by_state_->run(c, {.m = n, .n = p_, .k = 4 * d, .trans_b = true}, dgates_ + at * 4 * d,
                   c[weight_].template data<T>(), part);
    add_to(part, n * p_, dstate);
  }

  // scratch: f(cell) and the gradient of the cell through it.
  void cell_row(const Peepholes<T>& peep, const T* g, const T* cell, const T* before, const T* dhidden, T* scratch,
                T* dcell, T* dg, T* dbefore) const {
    const int64_t d = d_;
    const T *candidate = g, *in = g + d, *forget = g + 2 * d, *out = g + 3 * d;
    T *active = scratch, *through = scratch + d;
    std::copy(cell, cell + d, active);
    activate(with_.cell, active, d);
    for (int64_t j = 0; j < d; ++j) {
      dg[3 * d + j] = dhidden[j] * active[j];
      through[j] = dhidden[j] * out[j];
    }
    act_grad(with_.cell, active, through, d);
    act_grad(with_.gate, out, dg + 3 * d, d);
    add_to(through, d, dcell);
    if (peep.output) {
      for (int64_t j = 0; j < d; ++j) dcell[j] += dg[3 * d + j] * peep.output[j];
    }
    clip_cells(cell, dcell);
    for (int64_t j = 0; j < d; ++j) {
      dg[j] = dcell[j] * in[j];
      dg[d + j] = dcell[j] * candidate[j];
      dg[2 * d + j] = before ? dcell[j] * before[j] : T{0};
      dbefore[j] += dcell[j] * forget[j];
    }
    act_grad(with_.candidate, candidate, dg, d);
    act_grad(with_.gate, in, dg + d, 2 * d);
    if (!peep.input) return;
    for (int64_t j = 0; j < d; ++j) dbefore[j] += dg[d + j] * peep.input[j] + dg[2 * d + j] * peep.forget[j];
  }

  void clip_cells(const T* cell, T* dcell) const {
    if constexpr (std::is_same_v<T, float>) {
      if (as_fluid_) return clip_grad_of_fluid(with_.cell_clip, cell, dcell, d_);
    }
    clip_grad(static_cast<T>(with_.cell_clip), cell, dcell, d_);
  }

  void give(KernelContext& c, Workspace& room) {
    if (c.needs(dx_)) steps_.scatter(c, dgates_, 4 * d_, c[dx_].template mutable_data<T>());
    give_first(c, dh0_, dh_first_, p_);
    give_first(c, dc0_, dc_first_, d_);
    if (c.needs(dbias_)) give_bias(c, room);
    if (c.needs(dweight_)) {
      T* before = room.get<T>(rows_ * p_);
      steps_.gather_previous(c, c[result_].template data<T>(), h_first_, p_, before);
      to_weight_->run(c, {.m = p_, .n = 4 * d_, .k = rows_, .trans_a = true}, before, dgates_,
                      c[dweight_].template mutable_data<T>());
    }
    if (with_.projected && c.needs(dprojection_)) {
      to_projection_->run(c, {.m = d_, .n = p_, .k = rows_, .trans_a = true}, c[states_].template data<T>(), dcarried_,
                          c[dprojection_].template mutable_data<T>());
    }
  }

  void give_first(KernelContext& c, Out out, const T* from, int64_t width) const {
    if (!c.needs(out)) return;
    T* to = c[out].template mutable_data<T>();
    std::fill(to, to + c[out].numel(), T{0});
    steps_.scatter_first(c, from, width, to);
  }

  void give_bias(KernelContext& c, Workspace& room) {
    const int64_t d = d_;
    T* to = c[dbias_].template mutable_data<T>();
    std::fill(to, to + c[dbias_].numel(), T{0});
    add_columns(c, dgates_, rows_, 4 * d, to);
    if (!with_.peepholes) return;
    const T* cells = c[cells_].template data<T>();
    T* before = room.get<T>(rows_ * d);
    steps_.previous(c, cells, c_first_, d, before);
    // Each worker has separate units.
    constexpr int64_t kStrip = 32;
    c.parallel_for((d + kStrip - 1) / kStrip, kChangeGrain / std::max<int64_t>(1, rows_ * kStrip) + 1,
                   [&](int64_t first, int64_t last) {
                     const int64_t from = first * kStrip;
                     add_peepholes(cells, before, from, std::min(d, last * kStrip) - from, to + 4 * d + from);
                   });
  }

  void add_peepholes(const T* cells, const T* before, int64_t unit, int64_t n, T* to) const {
    for (int64_t r = 0; r < rows_; ++r) {
      const T *g = dgates_ + r * 4 * d_ + unit, *old = before + r * d_ + unit, *now = cells + r * d_ + unit;
      for (int64_t j = 0; j < n; ++j) to[j] += g[d_ + j] * old[j];
      for (int64_t j = 0; j < n; ++j) to[d_ + j] += g[2 * d_ + j] * old[j];
      for (int64_t j = 0; j < n; ++j) to[2 * d_ + j] += g[3 * d_ + j] * now[j];
    }
  }

  static std::shared_ptr<Tensor> rows() { return std::make_shared<Tensor>(); }

  LstmOptions with_;
  In h0_, c0_, weight_, projection_, bias_, result_, dresult_, dcell_, gate_, cells_, states_;
  Out dx_, dh0_, dc0_, dweight_, dprojection_, dbias_;
  int64_t p_ = 0, d_ = 0, rows_ = 0;
  bool as_fluid_ = false;  // gradients of cells are those of clip_grad_of_fluid
  const T *h_first_ = nullptr, *c_first_ = nullptr;
  T *carried_ = nullptr, *dcarried_ = nullptr, *dcells_ = nullptr, *dgates_ = nullptr, *dh_first_ = nullptr,
    *dc_first_ = nullptr;
  Steps steps_;
  std::shared_ptr<Tensor> h0_rows_ = rows(), c0_rows_ = rows(), dh0_rows_ = rows(), dc0_rows_ = rows(),
                          hidden_part_ = rows(), state_part_ = rows(), scratch_ = rows();
  std::shared_ptr<LstmPanels> panels_ = std::make_shared<LstmPanels>();
  std::shared_ptr<Gemm<T>> by_projection_ = std::make_shared<Gemm<T>>(), by_state_ = std::make_shared<Gemm<T>>(),
                           to_weight_ = std::make_shared<Gemm<T>>(), to_projection_ = std::make_shared<Gemm<T>>();
};

}  // namespace

template <class T> Kernel lstm_backward(const KernelArgs& op) { return Backward<T>(op); }
template Kernel lstm_backward<float>(const KernelArgs&);
template Kernel lstm_backward<double>(const KernelArgs&);

}  // namespace anabranch::sequence
