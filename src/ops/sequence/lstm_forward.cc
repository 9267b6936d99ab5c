#include <algorithm>
#include <type_traits>

#include "ops/kernels/workspace.h"
#include "ops/sequence/lstm_step.h"

namespace anabranch::sequence {
namespace {

template <class T> class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : with_(op.op()),
        x_(op.in("Input")),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        weight_(op.in("Weight")),
        projection_(with_.projected ? op.in("ProjWeight") : In{}),
        bias_(op.in("Bias")),
        result_(op.out(with_.projected ? "Projection" : "Hidden")),
        cell_(op.out("Cell")),
        gate_(op.out("BatchGate")),
        cells_(op.out("BatchCellPreAct")),
        states_(with_.projected ? op.out("BatchHidden") : Out{}) {}

  void operator()(KernelContext& c) {
    p_ = c[weight_].rows();
    d_ = c[weight_].row_elems() / 4;
    const int64_t rows = c[x_].rows();
    steps_.cut(offsets(c[x_]), with_.reverse);
    gates_ = c[gate_].template mutable_data<T>();
    all_cells_ = c[cells_].template mutable_data<T>();
    Workspace room;
    hidden_ = with_.projected ? c[states_].template mutable_data<T>() : room.get<T>(rows * d_);
    carried_ = with_.projected ? room.get<T>(rows * p_) : hidden_;
    steps_.gather_add(c, c[x_].data<T>(), c[bias_].data<T>(), 4 * d_, gates_);
    run(c, steps_.first<T>(c, h0_, p_, state_rows_), steps_.first<T>(c, c0_, d_, cell_rows_));
    steps_.scatter(c, carried_, p_, c[result_].template mutable_data<T>());
    steps_.scatter(c, all_cells_, d_, c[cell_].template mutable_data<T>());
  }

 private:
  void run(KernelContext& c, const T* state, const T* cell) {
    if constexpr (std::is_same_v<T, float>) {
      if (!with_.projected) {
        return panels_->forward(c, steps_, panel_weights(with_, c[weight_].data<T>(), c[bias_].data<T>(), d_),
                                {gates_, state, cell, hidden_, all_cells_});
      }
    }
    for (int64_t t = 0; t < steps_.count(); ++t) {
      step(c, t, state, cell);
      state = carried_ + steps_.begin(t) * p_;
      cell = all_cells_ + steps_.begin(t) * d_;
    }
  }

  void step(KernelContext& c, int64_t t, const T* state, const T* cell) {
    const int64_t n = steps_.rows(t), at = steps_.begin(t), d = d_;
    T* part = sized<T>(part_, n, 4 * d);
    if (state) by_state_->run(c, {.m = n, .n = 4 * d, .k = p_}, state, c[weight_].data<T>(), part);
    const Peepholes<T> peep(c[bias_].data<T>(), d, with_.peepholes);
    each_row(c, n, 4 * d, [&](int64_t k) {
      T* g = gates_ + (at + k) * 4 * d;
      if (state) add_to(part + k * 4 * d, 4 * d, g);
      lstm_row(with_, peep, d, cell ? cell + k * d : nullptr, g, all_cells_ + (at + k) * d, hidden_ + (at + k) * d);
    });
    if (!with_.projected) return;
    T* to = carried_ + at * p_;
    by_projection_->run(c, {.m = n, .n = p_, .k = d}, hidden_ + at * d, c[projection_].data<T>(), to);
    activate(with_.projection, to, n * p_);
    clip(static_cast<T>(with_.proj_clip), to, n * p_);
  }

  LstmOptions with_;
  In x_, h0_, c0_, weight_, projection_, bias_;
  Out result_, cell_, gate_, cells_, states_;
  int64_t p_ = 0, d_ = 0;
  T *gates_ = nullptr, *all_cells_ = nullptr, *hidden_ = nullptr, *carried_ = nullptr;
  Steps steps_;
  std::shared_ptr<Tensor> state_rows_ = std::make_shared<Tensor>(), cell_rows_ = std::make_shared<Tensor>(),
                          part_ = std::make_shared<Tensor>();
  std::shared_ptr<LstmPanels> panels_ = std::make_shared<LstmPanels>();
  std::shared_ptr<Gemm<T>> by_state_ = std::make_shared<Gemm<T>>(), by_projection_ = std::make_shared<Gemm<T>>();
};

}  // namespace

template <class T> Kernel lstm_forward(const KernelArgs& op) { return Forward<T>(op); }
template Kernel lstm_forward<float>(const KernelArgs&);
template Kernel lstm_forward<double>(const KernelArgs&);

}  // namespace anabranch::sequence
