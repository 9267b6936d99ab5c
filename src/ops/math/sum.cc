// Out = X[0] + X[1] + ..., in that order. Sums the gradients of a variable that has several, so it accepts tensors and
// sparse rows: only rows give rows (concatenated), a mixture gives a tensor, to which rows are added after merging
// repeated ids, as if they were dense tensors. A variable that is added to itself (X and Out) counts as zero before it
// has a value, as the states of evaluators do.
#include <algorithm>
#include <memory>

#include "opdef/device_rows.h"
#include "opdef/device_steps.h"
#include "ops/declare/declare.h"
#include "ops/device/launch_math.h"
#include "ops/device/launch_rows.h"
#include "ops/kernels/add_rows.h"
#include "ops/kernels/add_tensor.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/wide.h"

namespace anabranch::math::sum_op {
namespace {

void infer_arrays(InferContext& c, int n) {
  for (int i = 1; i < n; ++i) {
    AB_CHECK(c.in("X", i).kind == VarKind::kLoDTensorArray, Unsupported,
             "X must hold only arrays of tensors if X[0] is one, got X[{}] of kind {}", i,
             var_kind_name(c.in("X", i).kind));
  }
  if (!c.runtime()) c.out("Out") = c.in("X");
  c.out("Out").kind = VarKind::kLoDTensorArray;
}

// The input that determines the form of Out: the first tensor, else the first rows.
int like_out(const InferContext& c, int n) {
  int chosen = 0;
  while (chosen < n && c.in("X", chosen).unset) ++chosen;
  AB_CHECK(chosen < n, NotFound, "none of the variables of X holds a value");
  for (int i = chosen; i < n; ++i) {
    if (c.in("X", i).unset) continue;
    const VarKind kind = c.in("X", i).kind;
    AB_CHECK(kind == VarKind::kLoDTensor || kind == VarKind::kSelectedRows, Unsupported,
             "X[{}] must be a tensor or sparse rows, got a {}", i, var_kind_name(kind));
    if (kind == VarKind::kLoDTensor && c.in("X", chosen).kind != VarKind::kLoDTensor) chosen = i;
  }
  return chosen;
}

void infer_sum(InferContext& c) {
  const int n = c.n_in("X");
  AB_CHECK(n > 0, InvalidArgument, "X must name at least one variable");
  if (c.in("X").kind == VarKind::kLoDTensorArray) return infer_arrays(c, n);
  const int chosen = like_out(c, n);
  const Meta& like = c.in("X", chosen);
  for (int i = 0; i < n; ++i) {
    const Meta& x = c.in("X", i);
    if (x.unset) continue;
    AB_CHECK(compatible(x.shape, like.shape), ShapeMismatch, "X[{}] is {}, X[{}] is {}: they must be equal", i,
             x.shape.str(), chosen, like.shape.str());
    AB_CHECK(x.dtype == like.dtype, InvalidArgument, "all X must have the same dtype, got X[{}] of {} and X[{}] of {}",
             i, dtype_name(x.dtype), chosen, dtype_name(like.dtype));
  }
  Meta& out = c.out("Out");
  out.kind = like.kind;
  out.shape = like.shape;
  out.dtype = like.dtype;
  out.lod_level = like.lod_level;
  out.lod = like.lod;
}

// Sums in blocks that stay in the cache, in a separate buffer, because the result may alias any input; the last input
// is added into the result. next(i): input i, or null.
template <class T, class Next> void sum_chunk(int count, Next next, T* out, int64_t n) {
  constexpr int64_t kBlock = 512;
  T block[kBlock];
  int last = count - 1;
  while (last > 0 && !next(last)) --last;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t size = std::min(kBlock, n - from);
    const T* so_far = nullptr;
    for (int i = 0; i <= last; ++i) {
      const T* x = next(i);
      if (!x) continue;
      x += from;
      T* to = i == last ? out + from : block;
      if (so_far) {
        in_wide_vectors([=] {
          for (int64_t k = 0; k < size; ++k) to[k] = so_far[k] + x[k];
        });
      } else if (i == last && to != x) {
        std::copy_n(x, size, to);
      }
      so_far = so_far ? to : x;
    }
  }
}

template <class T> void sum_tensors(const KernelContext& c, In xs, T* out, int64_t n) {
  c.parallel_for(n, kCheapGrain, [&c, xs, out](int64_t begin, int64_t end) {
    const auto next = [&](int i) -> const T* {
      const auto* tensor = c.value(xs, i).get<Tensor>();
      return tensor && tensor->initialized() ? tensor->data<T>() + begin : nullptr;
    };
    sum_chunk(xs.count, next, out + begin, end - begin);
  });
}

TileLoop sum_tile(const KernelArgs& op, const std::string&) {
  return [xs = op.in("X")](const float* const* in, float* out, int64_t n) {
    sum_chunk(
        xs.count, [&](int i) { return in[xs.first + i]; }, out, n);
  };
}

template <class T> void join_rows(const KernelContext& c, In xs, SelectedRows* out) {
  size_t total = 0;
  int first = -1;
  for (int i = 0; i < xs.count; ++i) {
    if (!c.value(xs, i).initialized()) continue;
    if (first < 0) first = i;
    AB_CHECK(&c.value(xs, i).rows() != out, Unsupported, "sparse rows cannot be added up in place");
    total += c.value(xs, i).rows().rows.size();
  }
  Shape shape = c.value(xs, first).rows().value.shape();
  AB_CHECK(shape.rank() > 0, ShapeMismatch, "X[0] must hold rows with at least one axis");
  const int64_t width = shape.numel(1, shape.rank());
  shape.set(0, static_cast<int64_t>(total));
  out->height = c.value(xs, first).rows().height;
  out->rows.resize(total);
  out->value.resize(shape, dtype_of<T>);
  size_t at = 0;
  for (int i = first; i < xs.count; ++i) {
    if (!c.value(xs, i).initialized()) continue;
    const SelectedRows& x = c.value(xs, i).rows();
    AB_CHECK(x.value.numel() == static_cast<int64_t>(x.rows.size()) * width, ShapeMismatch,
             "X must have rows of one width, got X[{}] with values {} for {} rows and X[0] with {} elements per row", i,
             x.value.shape().str(), x.rows.size(), width);
    std::copy(x.rows.begin(), x.rows.end(), out->rows.begin() + static_cast<int64_t>(at));
    std::copy_n(x.value.data<T>(), x.value.numel(), out->value.mutable_data<T>() + static_cast<int64_t>(at) * width);
    at += x.rows.size();
  }
}

template <class T> void sum_values(const KernelContext& c, In xs, Out out, SelectedRows* merged) {
  const auto is_set = [&](int i) { return c.value(xs, i).initialized(); };
  const auto is_tensor = [&](int i) { return is_set(i) && c.value(xs, i).is<Tensor>(); };
  int tensors = 0;
  for (int i = 0; i < xs.count; ++i) tensors += is_tensor(i);
  if (tensors == 0) return join_rows<T>(c, xs, &c.value(out).as<SelectedRows>());
  sum_tensors(c, xs, c[out].mutable_data<T>(), c[out].numel());
  for (int i = 0; i < xs.count; ++i) {
    if (is_set(i) && !is_tensor(i)) add_rows(c.value(xs, i).rows(), merged, &c[out]);
  }
}

// Element by element; the longest array determines the number. Elements that only one array has are shared with it.
void sum_arrays(const KernelContext& c, In xs, Value& out) {
  TensorArray sum;
  for (int i = 0; i < xs.count; ++i) {
    const auto* array = c.value(xs, i).get<TensorArray>();
    AB_CHECK(array, InvalidArgument, "X[{}] must hold an array of tensors", i);
    if (array->size() > sum.size()) sum.resize(array->size());
    for (size_t k = 0; k < array->size(); ++k) {
      const Tensor& x = (*array)[k];
      if (!x.initialized()) continue;
      if (sum[k].initialized()) {
        add_to_element(c, x, sum[k]);
      } else {
        sum[k] = x;
      }
    }
  }
  out.as<TensorArray>() = std::move(sum);
}

// On a device: kMostSummands tensors per launch. The input that the result aliases comes first, so that none is
// overwritten before it is read.
void sum_there(const DeviceContext& c, ab_kernel kernel, const std::vector<const Tensor*>& xs, Tensor& out) {
  const auto count = static_cast<int>(xs.size());
  int own = 0;
  for (int i = 0; i < count; ++i) {
    if (xs[i]->raw() == out.raw()) own = i;
  }
  const bool fits = count <= device::kMostSummands;
  device::SumArgs a{};
  a.y = device::operand(out);
  a.n = out.numel();
  for (int i = 0; i < count; ++i) {
    const int next = fits || own == 0 ? i : i == 0 ? own : i <= own ? i - 1 : i;
    a.x[a.count++] = device::operand(*xs[next]);
    if (a.count < device::kMostSummands && i + 1 < count) continue;
    c.launch(kernel, a);
    a.x[0] = device::operand(std::as_const(out));
    a.count = 1;
  }
}

// Tensors and sparse rows, like sum_values() on the CPU.
template <class T> class SumThere {
 public:
  explicit SumThere(const KernelArgs& op) : x_(op.in("X")), out_(op.out("Out")) {}
  void operator()(const DeviceContext& c) {
    tensors_.clear();
    rows_.clear();
    for (int i = 0; i < x_.count; ++i) {
      if (!c.value(x_, i).initialized()) continue;
      const auto* rows = c.value(x_, i).get<SelectedRows>();
      rows ? rows_.push_back(rows) : tensors_.push_back(&c.at(x_, i));
    }
    if (tensors_.empty()) {
      const auto part = [this](int i) -> const SelectedRows& { return *rows_[i]; };
      return device::join_rows(c, static_cast<int>(rows_.size()), part, &c.value(out_).as<SelectedRows>());
    }
    sum_there(c, kernel_, tensors_, c[out_]);
    for (const SelectedRows* rows : rows_) add_rows_(c, *rows, c[out_]);
  }

 private:
  ab_kernel kernel_ = device::kernel_of<T>("sum");
  In x_;
  Out out_;
  device::AddRows<T> add_rows_;
  std::vector<const Tensor*> tensors_;  // the tensors of this run
  std::vector<const SelectedRows*> rows_;
};

AB_OP(sum)
    .doc("Out = X[0] + X[1] + ...; if all X are sparse rows, the rows of all, else a tensor.")
    .in_list("X", "tensors or sparse rows of one shape, or arrays of tensors")
    .takes("X", Holds::kAnything)
    .out("Out", "like X")
    .may_share("X", "Out")
    .ignores({"use_mkldnn"})
    .traits(kRowWise | kLinear | kSkipsUnset)
    .tile({.make = sum_tile, .grain = kCheapGrain})
    .infer(infer_sum)
    .grad([](GradContext& g) {
      const auto dxs = g.din("X");
      for (size_t i = 0; i < dxs.size(); ++i) {
        if (!g.needs_din("X", i)) continue;
        g.op("scale").bare().in("X", g.dout("Out")).out("Out", {dxs[i]}).attr("scale", 1.0f);
      }
    })
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), merged = std::make_shared<SelectedRows>()](KernelContext& c) {
        if (c.value(x).is<TensorArray>()) return sum_arrays(c, x, c.value(out));
        sum_values<T>(c, x, out, merged.get());
      };
    })
    .with(rows_on_devices)
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return SumThere<T>(op);
    })
    .with(device_step([](const KernelArgs& op, const std::string&) {
      DeviceStep step{"sum", {}};
      for (int i = 0; i < op.in("X").count; ++i) step.operands.push_back(op.in("X").first + i);
      return step;
    }));

}  // namespace
}  // namespace anabranch::math::sum_op
