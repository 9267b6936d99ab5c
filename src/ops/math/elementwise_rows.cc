#include "ops/math/elementwise_rows.h"

#include <cstring>
#include <memory>
#include <string>

#include "opdef/device_rows.h"
#include "opdef/device_steps.h"
#include "ops/declare/declare.h"
#include "ops/device/launch_division.h"
#include "ops/device/launch_math.h"
#include "ops/device/launch_rows.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/workspace.h"
#include "ops/math/add_channels.h"
#include "ops/nn/blocked.h"

namespace anabranch::math {

namespace {

void infer_out(InferContext& c) {
  const Meta &x = c.in("X"), &y = c.in("Y");
  check_same_dtype(c, "X", "Y");
  const Shape out = broadcast_shape(x.shape, y.shape, c.attr<int32_t>("axis"));
  c.set_out("Out", out, x.dtype);
  c.out("Out").kind = x.kind;
  if (out.rank() > 0 && x.shape.rank() > 0 && out[0] == x.shape[0]) c.share_lod("Out", "X");
}

// The pass blocked_layout sets this attribute, and only on elementwise_add.
bool of_channels(const KernelArgs& op) { return nn::is_blocked(op.op(), nn::kBlocked); }

bool is_whole(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// Sparse rows times or divided by a scalar, on a device.
DTypeFactory rows_there(const char* function) {
  return [function](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = device::kernel_of(std::string("binary/") + function, dtype), x = op.in("X"), y = op.in("Y"),
            out = op.out("Out"), tensors = device::binary(function)(dtype, op)](KernelContext& c) {
      const auto* rows = c.value(x).get<SelectedRows>();
      if (!rows) return tensors(c);
      const DeviceContext& queued = DeviceContext::of(c);
      AB_CHECK(c[y].numel() == 1, ShapeMismatch, "Y must have one element if X holds sparse rows, got {}",
               c[y].shape().str());
      auto& to = c.value(out).as<SelectedRows>();
      device::same_rows(queued, *rows, &to);
      device::BinaryArgs a{device::operand(rows->value), device::operand(c[y]), device::operand(to.value), {}, {}};
      a.axes = device::one_line<3>(rows->value.numel());
      a.axes.stride[2][0] = 0;
      queued.launch(kernel, a);
    };
  };
}

DTypeFactory forward_there(const char* function, bool sparse, const char* division) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    if (is_whole(dtype) && division) return device::integer_division(division)(dtype, op);
    return sparse ? rows_there(function)(dtype, op) : device::binary(function)(dtype, op);
  };
}

DTypeFactory backward_there(const char* function, bool divides) {
  return [divides, plain = device::binary_grad(function)](DType dtype, const KernelArgs& op) -> Kernel {
    return is_whole(dtype) && divides ? device::integer_division_grad()(dtype, op) : plain(dtype, op);
  };
}

template <class Run> Run find_run(std::span<const RunOf<Run>> runs, DType dtype) {
  for (const auto& of : runs) {
    if (of.dtype == dtype) return of.run;
  }
  return nullptr;
}

const char* element(const void* base, int64_t at, int64_t size) { return static_cast<const char*>(base) + at * size; }
char* element(void* base, int64_t at, int64_t size) { return static_cast<char*>(base) + at * size; }

// ---- forward

struct PairLoop {
  DType dtype;
  PairRun run;
  BinaryLoop fast;  // for float32, or null
};

// loop: (out, x, y); out is dense.
void run_pairs(const KernelContext& c, const NdLoop<3>& loop, const PairLoop& of, const void* x, const void* y,
               void* out) {
  constexpr int64_t kFastRun = 32;  // below this a call through a pointer costs more than it saves
  const auto step = loop.inner_strides();
  const auto size = static_cast<int64_t>(dtype_size(of.dtype));
  if (of.fast && step[1] && step[2] && loop.inner() >= kFastRun) {
    loop.run(c, kCheapGrain,
             [=, xs = static_cast<const float*>(x), ys = static_cast<const float*>(y), to = static_cast<float*>(out),
              fast = of.fast](const auto& at, int64_t n) { fast(xs + at[1], ys + at[2], to + at[0], n); });
    return;
  }
  loop.run(c, kCheapGrain, [=, run = of.run](const auto& at, int64_t n) {
    run(element(x, at[1], size), step[1], element(y, at[2], size), step[2], element(out, at[0], size), n);
  });
}

// Sparse rows times or divided by a scalar: the same rows, other values.
void run_rows(const PairLoop& of, const SelectedRows& x, const Tensor& y, SelectedRows* out) {
  AB_CHECK(y.numel() == 1, ShapeMismatch, "Y must have one element if X holds sparse rows, got {}", y.shape().str());
  const void* factor = y.data(of.dtype);
  if (out != &x) {
    out->rows = x.rows;
    out->height = x.height;
    out->value.resize(x.value.shape(), x.value.dtype());
  }
  of.run(x.value.data(of.dtype), 1, factor, 0, out->value.mutable_data(of.dtype), x.value.numel());
}

Kernel forward_kernel(const PairLoop& of, bool sparse, const KernelArgs& op) {
  return [of, sparse, axis = op.attr<int32_t>("axis"), x = op.in("X"), y = op.in("Y"),
          out = op.out("Out")](KernelContext& c) {
    if (sparse) {
      if (const auto* rows = c.value(x).get<SelectedRows>()) {
        return run_rows(of, *rows, c[y], &c.value(out).as<SelectedRows>());
      }
    }
    const auto loop = broadcast_loop(c[out].shape(), c[x].shape(), c[y].shape(), axis);
    run_pairs(c, loop, of, c[x].data(of.dtype), c[y].data(of.dtype), c[out].mutable_data(of.dtype));
  };
}

// ---- backward

struct GradLoop {
  const NdLoop<3>& loop;  // (Out@GRAD, X, Y)
  GradRun base;
  int64_t size;  // of an element
};

// Terms of one operand's gradient for every element of the result, in `terms`.
void run_terms(const KernelContext& c, const GradLoop& l, TermRun run, void* terms) {
  const auto step = l.loop.inner_strides();
  const GradRun base = l.base;
  const int64_t size = l.size;
  l.loop.run(c, kCheapGrain, [=](const auto& at, int64_t n) {
    const GradRun here{element(base.x, at[1], size),
                       element(base.y, at[2], size),
                       element(base.out, at[0], size),
                       element(base.dout, at[0], size),
                       step[1],
                       step[2]};
    run(here, element(terms, at[0], size), n);
  });
}

void sum_terms(const KernelContext& c, const Shape& whole, const Shape& laid, DType dtype, const void* terms,
               void* to) {
  const auto add_up = [&]<class T>(TypeTag<T>) {
    sum_to(c, whole, laid, static_cast<const T*>(terms), static_cast<T*>(to));
  };
  if (dtype == DType::kFloat32) return add_up(TypeTag<float>());
  if (dtype == DType::kFloat64) return add_up(TypeTag<double>());
  dtype == DType::kInt32 ? add_up(TypeTag<int32_t>()) : add_up(TypeTag<int64_t>());
}

// Sums of terms that would not stay in a cache: they are made and summed for a few of the leading indices at a time, if
// every result belongs to one of these. The same bits as with all terms at once, because a sum over so few elements
// does not depend on how many there are.
struct LeadingParts {
  static constexpr int64_t kElems = 32768, kWorthIt = 2 * kElems;
  const Shape &whole, &x, &y, &to;  // x, y, to: laid on the axes of the whole
  int64_t count() const { return whole[0]; }
  int64_t each() const { return whole.numel() / count(); }
  bool pay() const { return whole.rank() > 1 && whole.numel() > kWorthIt && to[0] == count() && each() <= kElems / 2; }
  // Elements of an operand in front of leading index i.
  static int64_t skipped(const Shape& s, int64_t i) { return s[0] == 1 ? 0 : i * (s.numel() / s[0]); }
  static Shape part(Shape s, int64_t n) {
    if (s[0] > 1) s.set(0, n);
    return s;
  }
  void run(const KernelContext& c, const GradLoop& l, DType dtype, TermRun run, void* result) const {
    const int64_t step = kElems / each();
    c.parallel_each((count() + step - 1) / step, 1, [&](int64_t k) {
      const int64_t i = k * step, n = std::min(step, count() - i), out = skipped(whole, i);
      const Shape terms_shape = part(whole, n);
      const auto loop = broadcast_loop(terms_shape, part(x, n), part(y, n), -1);
      const GradLoop here{loop,
                          {element(l.base.x, skipped(x, i), l.size), element(l.base.y, skipped(y, i), l.size),
                           element(l.base.out, out, l.size), element(l.base.dout, out, l.size), 0, 0},
                          l.size};
      KernelContext alone(c);
      alone.parallel = nullptr;
      Workspace room;
      char* terms = room.get<char>(n * each() * l.size);
      run_terms(alone, here, run, terms);
      sum_terms(alone, terms_shape, part(to, n), dtype, terms, element(result, skipped(to, i), l.size));
    });
  }
};

// One operand's gradient: its terms, summed over the axes on which it was broadcast. run: null if the terms are dout.
void operand_grad(const KernelContext& c, const GradLoop& l, const LeadingParts& parts, DType dtype, TermRun run,
                  Tensor* scratch, Tensor* result) {
  const Shape &whole = parts.whole, &laid = parts.to;
  void* to = result->mutable_data(dtype);
  if (laid == whole) {
    if (run) {
      run_terms(c, l, run, to);
    } else if (to != l.base.dout) {
      c.parallel_for(whole.numel(), kCheapGrain, [=, from = l.base.dout, size = l.size](int64_t begin, int64_t end) {
        std::memcpy(element(to, begin, size), element(from, begin, size), static_cast<size_t>((end - begin) * size));
      });
    }
  } else if (!run) {
    sum_terms(c, whole, laid, dtype, l.base.dout, to);
  } else if (parts.pay()) {
    parts.run(c, l, dtype, run, to);
  } else {
    scratch->resize(whole, dtype);
    run_terms(c, l, run, scratch->mutable_raw());
    sum_terms(c, whole, laid, dtype, scratch->raw(), to);
  }
}

Kernel backward_kernel(DType dtype, TermRun dx_run, TermRun dy_run, bool needs_out, const KernelArgs& op) {
  const In x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), out = needs_out ? op.in("Out") : dout;
  const Out dx = op.out("X@GRAD"), dy = op.out("Y@GRAD");
  const auto axis = op.attr<int32_t>("axis");
  return [=, scratch = std::make_shared<Tensor>()](KernelContext& c) {
    const Shape &whole = c[dout].shape(), &xs = c[x].shape(), &ys = c[y].shape();
    const auto loop = broadcast_loop(whole, xs, ys, axis);
    const GradLoop l{loop,
                     {c[x].data(dtype), c[y].data(dtype), c[out].data(dtype), c[dout].data(dtype), 0, 0},
                     static_cast<int64_t>(dtype_size(dtype))};
    const auto [x_laid, y_laid] = laid(xs, ys, axis);
    // X@GRAD last: it may alias Out@GRAD.
    if (c.needs(dy)) operand_grad(c, l, {whole, x_laid, y_laid, y_laid}, dtype, dy_run, scratch.get(), &c[dy]);
    if (c.needs(dx)) operand_grad(c, l, {whole, x_laid, y_laid, x_laid}, dtype, dx_run, scratch.get(), &c[dx]);
  };
}

// The terms of one operand's gradient without broadcasting.
TileLoop grad_tile(const KernelArgs& op, bool needs_out, TermRun run) {
  const int dout = op.in("Out@GRAD").first, out = needs_out ? op.in("Out").first : dout;
  return [x = op.in("X").first, y = op.in("Y").first, out, dout, run](const float* const* in, float* to, int64_t n) {
    if (run) return run({in[x], in[y], in[out], in[dout], 1, 1}, to, n);
    if (to != in[dout]) std::memcpy(to, in[dout], static_cast<size_t>(n) * sizeof(float));
  };
}

void backward_as_step(OpDef& def, const char* function, bool needs_out) {
  def.with(device_step([function, needs_out](const KernelArgs& op, const std::string& result) {
    const int dout = op.in("Out@GRAD").first, out = needs_out ? op.in("Out").first : dout;
    return DeviceStep{std::string(function) + (result == "X@GRAD" ? "_dx" : "_dy"),
                      {dout, op.in("X").first, op.in("Y").first, out}};
  }));
}

// The dtypes of a table, and the 16-bit floats of devices if it has float.
void offer_on_devices(OpDef& def, std::span<const RunOf<PairRun>> runs, const DTypeFactory& factory) {
  for (const auto& of : runs) {
    if (of.dtype == DType::kFloat32) def.device<float, float16, bfloat16>(factory);
    if (of.dtype == DType::kFloat64) def.device<double>(factory);
    if (of.dtype == DType::kInt32) def.device<int32_t>(factory);
    if (of.dtype == DType::kInt64) def.device<int64_t>(factory);
  }
}

}  // namespace

const char* function_of(const OpDef& def) { return def.type().c_str() + std::string_view("elementwise_").size(); }

void forward_as_step(OpDef& def) {
  def.with(device_step([function = function_of(def)](const KernelArgs& op, const std::string&) {
    return DeviceStep{function, {op.in("X").first, op.in("Y").first}};
  }));
}

OpDef& declare_with_runs(const Row& row, std::span<const RunOf<PairRun>> runs) {
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc)
      .in("X", row.sparse ? "[...] numbers, or sparse rows" : "[...] numbers")
      .in("Y", "dtype of X; its shape must broadcast with that of X");
  def.out("Out", "shape of X and Y after broadcasting; dtype of X").may_share("X", "Out");
  if (row.sparse) def.takes("X", Holds::kTensorOrRows);
  def.attr<int32_t>("axis", -1, "axis of X with which the first axis of Y is aligned; -1 aligns the last axes");
  def.ignores({"x_data_format", "y_data_format", "use_mkldnn"}).traits(kRowWise | row.traits).infer(infer_out);
  if (row.sparse) def.with(rows_on_devices);
  offer_on_devices(def, runs, forward_there(function_of(def), row.sparse, row.division));
  if (row.division) def.with(device::divided_by_zero);
  for (const auto& of : runs) {
    const PairLoop loop{of.dtype, of.run, of.dtype == DType::kFloat32 ? row.loop : nullptr};
    def.cpu_of(of.dtype, [loop, sparse = row.sparse](const KernelArgs& op) {
      return of_channels(op) ? add_channels(op) : forward_kernel(loop, sparse, op);
    });
  }
  return def;
}

TileOp forward_tile(const Row& row, PairRun run) {
  if (row.loop) return tile_of("X", "Y", kCheapGrain, row.loop);
  const auto make = [run](const KernelArgs& op, const std::string&) -> TileLoop {
    return [x = op.in("X").first, y = op.in("Y").first, run](const float* const* in, float* out, int64_t n) {
      run(in[x], 1, in[y], 1, out, n);
    };
  };
  return {.make = make, .grain = kMathGrain};
}

void declare_backward(OpDef& forward, bool needs_out, TermRuns dx, TermRuns dy, second_order::Maker second,
                      bool divides) {
  if (needs_out) {
    forward.grad_reads({"X", "Y"}, {"Out"});
  } else {
    forward.grad_reads({"X", "Y"});
  }
  OpDef& def = declare_gradient(forward.type().c_str(), __FILE__);
  def.doc("Gradients of " + forward.type() + ", summed over the axes on which an operand was broadcast.");
  def.may_share("Out@GRAD", "X@GRAD").grad_lod("X@GRAD", "Out@GRAD").grad_lod("Y@GRAD", "Y").grad(std::move(second));
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    def.cpu_of(dtype, [dtype, needs_out, of_x = find_run(dx, dtype), of_y = find_run(dy, dtype)](const KernelArgs& op) {
      return of_channels(op) ? add_channels_grad(op) : backward_kernel(dtype, of_x, of_y, needs_out, op);
    });
  }
  const char* function = function_of(forward);
  def.device<float, double, float16, bfloat16, int32_t, int64_t>(backward_there(function, divides));
  if (divides) def.with(device::divided_by_zero);
  backward_as_step(def, function, needs_out);
  const auto make = [needs_out, of_x = find_run(dx, DType::kFloat32), of_y = find_run(dy, DType::kFloat32)](
                        const KernelArgs& op, const std::string& result) {
    return grad_tile(op, needs_out, result == "X@GRAD" ? of_x : of_y);
  };
  def.tile({.make = make, .grain = kCheapGrain});
}

}  // namespace anabranch::math
