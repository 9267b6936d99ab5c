// Gradients of a table with many lookups in one op, and the update of the table directly from them. Made by the pass
// fuse_embeddings; bit-identical to the ops that they replace.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/row_locks.h"
#include "opdef/device_rows.h"
#include "ops/optim/element_rules.h"
#include "ops/optim/update.h"
#include "ops/sparse/grad_sources.h"
#include "ops/sparse/queued_lookups.h"
#include "sparse/record_loops.h"
#include "sparse/row_groups.h"

namespace anabranch::sparse::fused_embedding_grad_op {
namespace {

constexpr int64_t kGrainElems = 16384;
constexpr int64_t kNarrow = 8;  // elements of a row that is cheaper to sum at once than to find later

// ---- sparse rows: one per id of each lookup, in that order

template <class T> void copy_rows(KernelContext& c, const GradSources<T>& from, int64_t width, SelectedRows* out) {
  const int64_t n = from.count();
  out->rows.assign(from.ids(), from.ids() + n);
  out->value.resize(Shape{n, width}, dtype_of<T>);
  T* to = out->value.mutable_data<T>();
  c.parallel_each(n, std::max<int64_t>(1, kGrainElems / std::max<int64_t>(1, width)), [=, &from](int64_t k) {
    for (int64_t j = 0; j < width; ++j) to[k * width + j] = from.gradient(k, j);
  });
}

AB_OP(fused_embedding_grad)
    .doc(
        "W@GRAD = the sparse gradient of a table with several lookups, pooled or not, from the gradients of the "
        "tensors that contain their results.")
    .in("W", "[height, width] float; only its shape is read")
    .with(declare_sources)
    .out("W@GRAD", "the rows of all lookups, one after another")
    .traits(kLooksUp | kReadsTableShape)
    .infer([](InferContext& c) {
      check_rank(c, "W", 2, 2);
      infer_sources(c, "W");
      c.same_shape("W@GRAD", "W");
      c.out("W@GRAD").kind = VarKind::kSelectedRows;
    })
    .no_grad("it is inserted after the gradients")
    .dtype_of_input("W")
    .with(rows_on_devices)
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return queued_table_grad<T>(op); })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto sources = std::make_shared<GradSources<T>>(op);
      return [=, w = op.in("W"), dw = op.out("W@GRAD")](KernelContext& c) {
        if (!c.needs(dw)) return;
        const int64_t height = c[w].rows(), width = c[w].row_elems();
        sources->read(c, height, width);
        auto& rows = c.value(dw).template as<SelectedRows>();
        rows.height = height;
        copy_rows(c, *sources, width, &rows);
      };
    });

// ---- updates

RowRule fused_rule(const std::string& name) {
  const RowRule rule = row_rule(name);
  AB_CHECK(rule <= RowRule::kAdam, InvalidArgument, "rule must be sgd, adagrad or adam, got \"{}\"", name);
  return rule;
}

void infer_update(InferContext& c) {
  const RowRule rule = fused_rule(c.attr<std::string>("rule"));
  const int states = rules::info_of(rule).moments, powers = rule == RowRule::kAdam ? 2 : 0;
  check_rank(c, "Param", 2, 2);
  check_numel(c, "LearningRate", 1);
  infer_sources(c, "Param");
  AB_CHECK(c.n_in("State") == states && c.n_out("StateOut") == states && c.n_in("Power") == powers &&
               c.n_out("PowerOut") == powers,
           InvalidArgument, "rule {} must have {} State and {} Power", c.attr<std::string>("rule"), states, powers);
  c.same_as("ParamOut", "Param");
  for (int i = 0; i < states; ++i) {
    const Meta &s = c.in("State", i), &p = c.in("Param");
    AB_CHECK(s.kind == VarKind::kLoDTensor && compatible(s.shape, p.shape) && s.dtype == p.dtype, ShapeMismatch,
             "State[{}] must be {} of {}, like Param, got {} of {}", i, p.shape.str(), dtype_name(p.dtype),
             s.shape.str(), dtype_name(s.dtype));
    AB_CHECK(c.op().output("StateOut")[static_cast<size_t>(i)] != ir::kEmptyVar, InvalidArgument,
             "StateOut[{}] must be given", i);
    c.set_out("StateOut", s.shape, s.dtype, i);
  }
  for (int i = 0; i < powers; ++i) {
    AB_CHECK(c.in("Power", i).shape.numel() <= 1, ShapeMismatch, "Power[{}] must have one element, got {}", i,
             c.in("Power", i).shape.str());
    c.set_out("PowerOut", c.in("Power", i).shape, c.in("Power", i).dtype, i);
  }
}

template <class T> class Update {
 public:
  explicit Update(const KernelArgs& op)
      : param_(op.in("Param")),
        rate_(op.in("LearningRate")),
        state_(op.in("State")),
        power_(op.in("Power")),
        beta1_in_(op.in("Beta1Tensor")),
        beta2_in_(op.in("Beta2Tensor")),
        param_out_(op.out("ParamOut")),
        state_out_(op.out("StateOut")),
        power_out_(op.out("PowerOut")),
        beta1_(static_cast<T>(op.attr<float>("beta1"))),
        beta2_(static_cast<T>(op.attr<float>("beta2"))),
        sources_(op) {
    made_.rule = row_rule(op.attr<std::string>("rule"));
    made_.epsilon = static_cast<T>(op.attr<float>("epsilon"));
  }

  void operator()(KernelContext& c) {
    RowUpdate<T> u = made_;
    u.width = u.stride = c[param_].row_elems();
    u.shared = RowLocks::shared();
    sources_.read(c, c[param_].rows(), u.width);
    groups_.read(sources_.ids(), sources_.count(), c.parallel);
    u.param = optim::updated<T>(c, param_, param_out_);
    for (int i = 0; i < state_.count; ++i) u.state[static_cast<size_t>(i)] = state(c, i);
    set_rate(c, &u);
    u.next = groups_.next();
    u.grads = sources_.grads();
    u.divisors = sources_.divisors();
    u.factors = sources_.factors();
    const bool narrow = u.width <= kNarrow;
    if (narrow) sums_.resize(static_cast<size_t>(sources_.count() * u.width));
    c.parallel_each(groups_.chunks(), 1, [&](int64_t p) {
      RowUpdate<T> chunk = u;
      if (narrow) chunk.sums = sums_.data() + groups_.start(p) * u.width;
      const RowGroups::Chunk rows = narrow ? sum_chunk(p, u) : groups_.group(p);
      chunk.rows = rows.rows;
      chunk.first = rows.first;
      chunk.count = rows.count;
      update_rows(chunk);
    });
  }

 private:
  T* state(KernelContext& c, int i) const {
    return optim::updated<T>(c, In{state_.first + i, 1}, Out{state_out_.first + i, 1});
  }

  // Groups a chunk and sums the gradients of each row, in order. Meanwhile the rows are fetched.
  RowGroups::Chunk sum_chunk(int64_t p, const RowUpdate<T>& u) {
    T* const sums = sums_.data() + groups_.start(p) * u.width;
    const auto grouped = [&](auto width) {
      return groups_.group(p, [=, this](int32_t row, int32_t position, int64_t id, bool first) {
        T* const sum = sums + row * width;
        if (first) {
          prefetch_row_of(u, id);
          for (int64_t j = 0; j < width; ++j) sum[j] = sources_.gradient(position, j);
        } else {
          for (int64_t j = 0; j < width; ++j) sum[j] += sources_.gradient(position, j);
        }
      });
    };
    return u.width == 1 ? grouped(std::integral_constant<int64_t, 1>()) : grouped(u.width);
  }

  static void prefetch_row_of(const RowUpdate<T>& u, int64_t id) {
    __builtin_prefetch(u.param + id * u.stride);
    for (const T* state : u.state) {
      if (state) __builtin_prefetch(state + id * u.stride);
    }
  }

  // The powers advance before a sparse step, as in the op adam.
  void set_rate(KernelContext& c, RowUpdate<T>* u) const {
    u->rate = optim::scalar<T>(c[rate_]);
    if (made_.rule != RowRule::kAdam) return;
    u->beta1 = beta1_in_ ? optim::scalar<T>(c[beta1_in_]) : beta1_;
    u->beta2 = beta2_in_ ? optim::scalar<T>(c[beta2_in_]) : beta2_;
    const T now1 = move_power(c, 0, u->beta1), now2 = move_power(c, 1, u->beta2);
    u->rate = rules::corrected_rate(u->rate, now1, now2);
  }

  T move_power(KernelContext& c, int i, T beta) const {
    const T now = optim::scalar<T>(c.at(power_, i)) * beta;
    if (!c.needs(power_out_, i)) return now;
    Tensor& out = c.at(power_out_, i);
    if (out.dtype() == DType::kFloat64) {
      *out.mutable_data<double>() = static_cast<double>(now);
    } else {
      *out.mutable_data<float>() = static_cast<float>(now);
    }
    return now;
  }

  In param_, rate_, state_, power_, beta1_in_, beta2_in_;
  Out param_out_, state_out_, power_out_;
  T beta1_, beta2_;
  RowUpdate<T> made_;
  GradSources<T> sources_;
  RowGroups groups_;
  std::vector<T> sums_;  // of the gradients of narrow rows
};

AB_OP(fused_embedding_update)
    .doc(
        "Updates the looked-up rows of a table by sgd, adagrad or adam (lazy), from the gradients of the tensors that "
        "contain the results of the lookups; the gradients of a row are summed in order.")
    .in("Param", "[height, width] float: the table")
    .in("LearningRate", "[1] float")
    .in_optional_list("State", "like Param: the moments of the rule")
    .in_optional_list("Power", "[1] each: the powers of beta1 and beta2 (adam)")
    .in_optional("Beta1Tensor", "[1], instead of the attribute beta1")
    .in_optional("Beta2Tensor", "[1], instead of the attribute beta2")
    .with(declare_sources)
    .out("ParamOut", "Param, updated in place")
    .out_list("StateOut", "State, updated in place")
    .out_list("PowerOut", "Power, advanced")
    .attr<std::string>("rule", "sgd", "sgd, adagrad or adam", [](const std::string& v) { fused_rule(v); })
    .attr<float>("beta1", 0.9f, "decay of the first moment (adam)")
    .attr<float>("beta2", 0.999f, "decay of the second moment (adam)")
    .attr<float>("epsilon", 1.0e-8f, "keeps the quotient finite (adagrad, adam)")
    .traits(kLooksUp)
    .infer(infer_update)
    .no_grad(optim::kNoGrad)
    .dtype_of_input("Param")
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return queued_row_update<T>(op); })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto kernel = std::make_shared<Update<T>>(op);
      return [kernel](KernelContext& c) { (*kernel)(c); };
    });

}  // namespace
}  // namespace anabranch::sparse::fused_embedding_grad_op
