// What update rules share: checks, the rate, and a loop that treats dense and sparse gradients alike. A rule is a
// function of elements: rule(i, n, g) updates elements [i, i + n) of the parameter and of its state from the gradients
// g[0, n). Parameter and state are updated in place: outputs share the memory of the inputs of the same name.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "core/row_locks.h"
#include "opdef/op_def.h"
#include "ops/kernels/checks.h"

namespace anabranch::optim {

inline constexpr int64_t kGrain = 16384;  // elements worth handing to another worker

// Slots of the state that goes with Param: (input, output).
using StateSlots = std::vector<std::pair<const char*, const char*>>;

// Param, Grad and state agree in shape and dtype; the outputs are as the inputs.
void infer_update(InferContext& c, const StateSlots& state);

// The one element of a float tensor.
template <class T> T scalar(const Tensor& t) {
  AB_CHECK(t.numel() == 1, InvalidArgument, "a scalar is expected, the tensor is {}", t.shape().str());
  return t.dtype() == DType::kFloat64 ? static_cast<T>(*t.data<double>()) : static_cast<T>(*t.data<float>());
}

// An output without the memory of its input (it has another name) starts as a copy of it.
template <class T> T* updated(KernelContext& c, In in, Out out) {
  T* to = c[out].mutable_data<T>();
  const T* from = c[in].data<T>();
  if (to != from) std::copy(from, from + c[in].numel(), to);
  return to;
}

enum class Rows { kAll, kTouched };  // of a sparse gradient: those that it lacks have gradient zero, or are left alone

// A sparse gradient with one entry for each id, ascending.
struct MergedRows {
  const SelectedRows& merge(const SelectedRows& in, const Shape& param);
  SelectedRows merged;
  std::vector<char> zeros;  // a row of gradient zero
};

template <class T, class Rule> void update_dense(KernelContext& c, const T* grad, int64_t n, Rule&& rule) {
  c.parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { rule(begin, end - begin, grad + begin); });
}

// table: the address of the parameter's first element, by which its rows are locked where they must be.
template <class T, class Rule>
void update_sparse(KernelContext& c, const SelectedRows& g, const T* zeros, const void* table, Rows which,
                   Rule&& rule) {
  const bool shared = RowLocks::shared();
  const int64_t width = g.value.row_elems();
  const T* values = g.value.data<T>();
  const auto count = static_cast<int64_t>(g.rows.size());
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
  if (which == Rows::kTouched) {
    c.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const RowLocks::Hold hold(table, g.rows[k], shared);
        rule(g.rows[k] * width, width, values + k * width);
      }
    });
    return;
  }
  c.parallel_for(g.height, grain, [&](int64_t begin, int64_t end) {
    int64_t k = std::lower_bound(g.rows.begin(), g.rows.end(), begin) - g.rows.begin();
    for (int64_t row = begin; row < end; ++row) {
      const bool present = k < count && g.rows[k] == row;
      const RowLocks::Hold hold(table, row, shared);
      rule(row * width, width, present ? values + k * width : zeros);
      k += present;
    }
  });
}

// Gradients of one update op, kept between steps for its scratch memory.
template <class T> class Gradients {
 public:
  // Once for every run, before update(): a rule that needs two passes calls update() twice.
  void read(const Value& grad, const Tensor& param) {
    sparse_ = grad.get<SelectedRows>();
    if (sparse_) {
      sparse_ = &scratch_->merge(*sparse_, param.shape());
    } else {
      dense_ = grad.tensor().data<T>();
    }
    table_ = param.raw();
    numel_ = param.numel();
  }
  template <class Rule> void update(KernelContext& c, Rows which, Rule&& rule) const {
    if (sparse_) {
      update_sparse<T>(c, *sparse_, reinterpret_cast<const T*>(scratch_->zeros.data()), table_, which, rule);
    } else {
      update_dense<T>(c, dense_, numel_, rule);
    }
  }

 private:
  std::shared_ptr<MergedRows> scratch_ = std::make_shared<MergedRows>();
  const SelectedRows* sparse_ = nullptr;
  const T* dense_ = nullptr;
  const void* table_ = nullptr;
  int64_t numel_ = 0;
};

inline constexpr const char* kNoGrad = "an update ends the step: nothing is differentiated through it";

}  // namespace anabranch::optim
