// Shared by update rules: checks, the learning rate, and a loop over dense and sparse gradients. A rule is a function
// of elements: rule(i, n, g) updates elements [i, i + n) of the parameter and of its state by the gradients g[0, n).
// Parameter and state are updated in place: outputs share the memory of the inputs of the same name.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/flags.h"
#include "core/row_locks.h"
#include "opdef/op_def.h"
#include "ops/declare/checks.h"
#include "sparse/row_groups.h"

namespace anabranch::optim {

inline constexpr int64_t kGrain = 16384;  // number of elements worth a task for another worker

// A state slot of Param, and the slot that it is written to.
struct StateSlot {
  const char *in, *out;
};
using StateSlots = std::vector<StateSlot>;

// Param, Grad and state must match in shape and dtype; the outputs are like the inputs.
void infer_update(InferContext& c, const StateSlots& state);

// The declarations of all rules: Param with its gradient and, except for rules that compute it, the learning rate;
// Param and state updated in place; and infer_update.
std::function<void(OpDef&)> updates(StateSlots state = {}, bool with_rate = true);

// A float attribute, converted to the element type.
template <class T> T number(const KernelArgs& op, const char* name) { return static_cast<T>(op.attr<float>(name)); }

// The only element of a float tensor.
template <class T> T scalar(const Tensor& t) {
  AB_CHECK(t.numel() == 1, InvalidArgument, "a scalar input must have one element, got shape {}", t.shape().str());
  return t.dtype() == DType::kFloat64 ? static_cast<T>(*t.data<double>()) : static_cast<T>(*t.data<float>());
}

// An output in other memory than its input (it has another name) starts as a copy of it.
template <class T> T* updated(KernelContext& c, In in, Out out) {
  T* to = c[out].mutable_data<T>();
  const T* from = c[in].data<T>();
  if (to != from) std::copy(from, from + c[in].numel(), to);
  return to;
}

// Rows missing from a sparse gradient have a zero gradient, or are not updated.
enum class Rows { kAll, kTouched };

// Whether Fluid 1.8.5 skips the step, for the rules that compute it with zeros by default.
inline bool skips_step(const Value& grad) {
  const auto* rows = grad.get<SelectedRows>();
  return rows && rows->rows.empty() && Flags::exact_fluid();
}

// A sparse gradient must fit the parameter and name existing rows.
void check_rows(const SelectedRows& grad, const Shape& param);

template <class T, class Rule> void update_dense(KernelContext& c, const T* grad, int64_t n, Rule&& rule) {
  c.parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { rule(begin, end - begin, grad + begin); });
}

// The gradients of one update op; kept between steps for its scratch memory.
template <class T> class Gradients {
 public:
  // Once per run, before update().
  void read(const Value& grad, const Tensor& param) {
    sparse_ = grad.get<SelectedRows>();
    if (sparse_) {
      check_rows(*sparse_, param.shape());
    } else {
      dense_ = grad.tensor().data<T>();
    }
    table_ = param.raw();
    numel_ = param.numel();
  }

  template <class Rule> void update(KernelContext& c, Rows which, Rule&& rule) {
    if (!sparse_) return update_dense<T>(c, dense_, numel_, rule);
    which == Rows::kTouched ? update_touched(c, rule) : update_all(c, rule);
  }

 private:
  struct Scratch {
    SelectedRows merged;
    sparse::RowGroups groups;
    std::vector<T> rows;  // zero gradient, or a sum per chunk
  };

  // A row that occurs several times gets the sum of its gradients, in order of occurrence.
  template <class Rule> void update_touched(KernelContext& c, Rule& rule) {
    const int64_t width = sparse_->value.row_elems();
    const T* values = sparse_->value.data<T>();
    sparse::RowGroups& groups = scratch_->groups;
    groups.read(sparse_->rows.data(), static_cast<int64_t>(sparse_->rows.size()), c.parallel);
    scratch_->rows.resize(static_cast<size_t>(groups.chunks() * width));
    c.parallel_each(groups.chunks(), 1, [&](int64_t p) {
      const sparse::RowGroups::Chunk chunk = groups.group(p);
      update_chunk(chunk, values, width, scratch_->rows.data() + p * width, rule);
    });
  }

  template <class Rule>
  void update_chunk(const sparse::RowGroups::Chunk& chunk, const T* values, int64_t width, T* sum, Rule& rule) const {
    const bool shared = RowLocks::shared();
    const int32_t* next = scratch_->groups.next();
    for (int64_t k = 0; k < chunk.count; ++k) {
      int32_t place = chunk.first[k];
      const T* grad = values + place * width;
      if (next[place] >= 0) {
        std::copy(grad, grad + width, sum);
        while ((place = next[place]) >= 0) {
          const T* more = values + place * width;
          for (int64_t j = 0; j < width; ++j) sum[j] = static_cast<T>(sum[j] + more[j]);
        }
        grad = sum;
      }
      const RowLocks::Hold hold(table_, chunk.rows[k], shared);
      rule(chunk.rows[k] * width, width, grad);
    }
  }

  template <class Rule> void update_all(KernelContext& c, Rule& rule) {
    merge_rows(*sparse_, &scratch_->merged);
    const SelectedRows& g = scratch_->merged;
    const int64_t width = g.value.row_elems();
    const T* values = g.value.data<T>();
    const auto count = static_cast<int64_t>(g.rows.size());
    scratch_->rows.assign(static_cast<size_t>(width), T{0});
    const bool shared = RowLocks::shared();
    c.parallel_for(g.height, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width)),
                   [&](int64_t begin, int64_t end) {
                     int64_t k = std::lower_bound(g.rows.begin(), g.rows.end(), begin) - g.rows.begin();
                     for (int64_t row = begin; row < end; ++row) {
                       const bool present = k < count && g.rows[k] == row;
                       const RowLocks::Hold hold(table_, row, shared);
                       rule(row * width, width, present ? values + k * width : scratch_->rows.data());
                       k += present;
                     }
                   });
  }

  std::shared_ptr<Scratch> scratch_ = std::make_shared<Scratch>();
  const SelectedRows* sparse_ = nullptr;
  const T* dense_ = nullptr;
  const void* table_ = nullptr;  // the table whose rows are locked, if locks are needed
  int64_t numel_ = 0;
};

inline constexpr const char* kNoGrad = "updates are not differentiable";

}  // namespace anabranch::optim
