// Sums of a parameter over the last steps, whose mean is used for evaluation.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/device/launch_update.h"
#include "ops/kernels/flat_loop.h"
#include "ops/optim/update.h"

namespace anabranch::optim::average_op {
namespace {

constexpr int64_t kMaxSummands = 16384;  // sum_1 is added to sum_2 this often, so that small summands are not lost

constexpr StateSlot kSums[] = {{"in_sum_1", "out_sum_1"}, {"in_sum_2", "out_sum_2"}, {"in_sum_3", "out_sum_3"}};
constexpr StateSlot kCounts[] = {{"in_num_accumulates", "out_num_accumulates"},
                                 {"in_old_num_accumulates", "out_old_num_accumulates"},
                                 {"in_num_updates", "out_num_updates"}};

void declare_state(OpDef& def) {
  const char* sums[] = {"like param: sum since the last transfer", "like param: sums transferred from sum_1",
                        "like param: sum of the previous window"};
  const char* counts[] = {"[1] int64: steps in sum_1 and sum_2", "[1] int64: steps in sum_3", "[1] int64: all steps"};
  for (int k = 0; k < 3; ++k) def.in(kSums[k].in, sums[k]).out(kSums[k].out, "the same, after this step");
  for (int k = 0; k < 3; ++k) def.in(kCounts[k].in, counts[k]).out(kCounts[k].out, "the same, after this step");
  for (const auto& slots : {kSums, kCounts}) {
    for (int k = 0; k < 3; ++k) def.updates(slots[k].in, slots[k].out);
  }
}

void infer(InferContext& c) {
  const int64_t least = c.attr<int64_t>("min_average_window"), most = c.attr<int64_t>("max_average_window");
  AB_CHECK(least <= most, InvalidArgument, "min_average_window must not be above max_average_window ({}), got {}", most,
           least);
  for (const auto& [in, out] : kSums) {
    check_same(c, in, "param");
    c.same_as(out, in);
  }
  for (const auto& [in, out] : kCounts) {
    check_numel(c, in, 1);
    check_dtype(c, in, DType::kInt64);
    c.same_as(out, in);
  }
}

struct Window {
  float rate;
  int64_t least, most;
  // Whether `summands` steps fill the window after `steps` steps. The window is the fraction `rate` of all steps, from
  // `least` to `most`.
  bool full(int64_t summands, int64_t steps) const {
    const float part = std::trunc(static_cast<float>(steps) * rate);
    return summands >= least && (summands >= most || static_cast<float>(summands) >= part);
  }
};

struct Moves {
  bool to_second, to_third;
};

template <class T> void accumulate(KernelContext& c, const T* param, T* const sums[3], const Moves& moves, int64_t n) {
  T *first = sums[0], *second = sums[1], *third = sums[2];
  c.parallel_for(n, kCheapGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) first[i] += param[i];
    if (moves.to_second) {
      for (int64_t i = begin; i < end; ++i) second[i] += first[i];
      std::fill(first + begin, first + end, T{0});
    }
    if (moves.to_third) {
      for (int64_t i = begin; i < end; ++i) third[i] = first[i] + second[i];
      std::fill(first + begin, first + end, T{0});
      std::fill(second + begin, second + end, T{0});
    }
  });
}

constexpr auto average_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const Window window{op.attr<float>("average_window"), op.attr<int64_t>("min_average_window"),
                      op.attr<int64_t>("max_average_window")};
  const In param = op.in("param");
  std::array<In, 3> sums_in, counts_in;
  std::array<Out, 3> sums_out, counts_out;
  for (size_t k = 0; k < 3; ++k) {
    sums_in[k] = op.in(kSums[k].in), sums_out[k] = op.out(kSums[k].out);
    counts_in[k] = op.in(kCounts[k].in), counts_out[k] = op.out(kCounts[k].out);
  }
  return [=](KernelContext& c) {
    T* sums[3];
    int64_t* counts[3];
    for (size_t k = 0; k < 3; ++k) {
      sums[k] = updated<T>(c, sums_in[k], sums_out[k]);
      counts[k] = updated<int64_t>(c, counts_in[k], counts_out[k]);
    }
    int64_t &summands = *counts[0], &before = *counts[1], &steps = *counts[2];
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    AB_CHECK(summands < kMost && steps < kMost, InvalidArgument,
             "in_num_accumulates and in_num_updates must be below {}, got {} and {}", kMost, summands, steps);
    ++summands;
    ++steps;
    const Moves moves{steps % kMaxSummands == 0, window.full(summands, steps)};
    accumulate(c, c[param].data<T>(), sums, moves, c[param].numel());
    if (!moves.to_third) return;
    before = summands;
    summands = 0;
  };
};

constexpr auto average_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  device::AverageArgs a{};
  a.least = op.attr<int64_t>("min_average_window");
  a.most = op.attr<int64_t>("max_average_window");
  a.p[0] = static_cast<double>(op.attr<float>("average_window"));
  std::array<std::pair<In, Out>, 3> sums, counts;
  for (size_t k = 0; k < 3; ++k) {
    sums[k] = {op.in(kSums[k].in), op.out(kSums[k].out)};
    counts[k] = {op.in(kCounts[k].in), op.out(kCounts[k].out)};
  }
  return [=, kernel = device::kernel_of<T>("average_accumulates"),
          param = op.in("param")](const DeviceContext& c) mutable {
    a.param = device::operand(c[param]);
    a.n = c[param].numel();
    for (size_t k = 0; k < 3; ++k) {
      a.sums[k] = device::updated(c, sums[k].first, sums[k].second);
      a.counts[k] = device::updated(c, counts[k].first, counts[k].second);
    }
    c.launch(kernel, a);
  };
};

AB_OP(average_accumulates)
    .doc(
        "sum_1 += param. Every 16384 steps sum_2 += sum_1 and sum_1 = 0. When the window is full - at least "
        "min_average_window and min(max_average_window, average_window num_updates) steps - sum_3 = sum_1 + sum_2, "
        "both become 0, old_num_accumulates = num_accumulates, and the count restarts. The mean is (sum_1 + sum_2 + "
        "sum_3) / (num_accumulates + old_num_accumulates).")
    .source("Polyak & Juditsky, SIAM J. Control Optim. 30(4), 1992")
    .in("param", "[...] float")
    .with(declare_state)
    .attr<float>("average_window", 0.0f, "length of the window as a fraction of all steps")
    .attr<int64_t>("max_average_window", int64_t{10000}, "maximum length of the window, at least min_average_window")
    .attr<int64_t>("min_average_window", int64_t{10000}, "minimum length of the window")
    .dtype_of_input("param")
    .infer(infer)
    .no_grad(kNoGrad)
    .cpu<float, double>(average_kernel)
    .device<float, double>(average_on_device);

}  // namespace
}  // namespace anabranch::optim::average_op
