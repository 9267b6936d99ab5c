// Declares an op and its gradient from a row of activations.h.
#include <algorithm>
#include <array>

#include "base/flags.h"
#include "opdef/device_steps.h"
#include "ops/declare/declare.h"
#include "ops/device/launch.h"
#include "ops/math/activations.h"

namespace anabranch::math {
namespace {

using Numbers = std::array<float, kMaxParams>;

Numbers numbers_of(const Activation& row, const KernelArgs& op) {
  Numbers p{};
  for (size_t i = 0; i < row.attrs.size(); ++i) p[i] = op.attr<float>(row.attrs[i].name);
  return p;
}

device::NumbersOf names_of(const Activation& row) {
  device::NumbersOf numbers;
  for (size_t i = 0; i < row.attrs.size(); ++i) numbers.names[i] = row.attrs[i].name;
  return numbers;
}

// Whether FLAGS_exact_fluid selects another device kernel for the gradient.
bool slopes_as_fluid(const Activation& row) { return row.fluid_slope && Flags::exact_fluid(); }

// As a step on devices: the function <type><ending> of these inputs.
void activation_step(OpDef& def, const Activation& row, const std::vector<const char*>& from, const char* ending) {
  add_device_step(def, [row, from, ending](const KernelArgs& op, const std::string&) {
    DeviceStep step{row.type + std::string(*ending && slopes_as_fluid(row) ? "_as_fluid" : "") + ending, {}};
    for (const char* slot : from) step.operands.push_back(op.in(slot).first);
    const Numbers p = numbers_of(row, op);
    std::copy(p.begin(), p.end(), step.numbers.begin());
    return step;
  });
}

TileOp activation_tile(const Activation& row, const ActivationRuns& runs) {
  if (row.loop) return tile_of("X", row.grain, row.loop);
  const auto make = [row, run = runs.of_float](const KernelArgs& op, const std::string&) -> TileLoop {
    return [x = op.in("X").first, p = numbers_of(row, op), run, loop = row.param_loop](const float* const* in,
                                                                                       float* out, int64_t n) {
      loop ? loop(in[x], p.data(), out, n) : run(in[x], p.data(), out, n);
    };
  };
  return {.make = make, .grain = row.grain};
}

Kernel looped(const Activation& row, const KernelArgs& op) {
  return [loop = row.loop, grain = row.grain, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    run_loop(c, grain, c[x].numel(), c[x].data<float>(), c[out].mutable_data<float>(), loop);
  };
}

Kernel param_looped(const Activation& row, const KernelArgs& op) {
  return [loop = row.param_loop, grain = row.grain, p = numbers_of(row, op), x = op.in("X"),
          out = op.out("Out")](KernelContext& c) {
    const float* from = c[x].data<float>();
    float* to = c[out].mutable_data<float>();
    c.parallel_for(c[x].numel(), grain,
                   [=](int64_t begin, int64_t end) { loop(from + begin, p.data(), to + begin, end - begin); });
  };
}

Kernel mapped(DType dtype, MapRun run, int64_t grain, const Numbers& p, const KernelArgs& op) {
  return [dtype, run, grain, p, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    const auto* from = static_cast<const char*>(c[x].data(dtype));
    auto* to = static_cast<char*>(c[out].mutable_data(dtype));
    const auto size = static_cast<int64_t>(dtype_size(dtype));
    c.parallel_for(c[x].numel(), grain, [=](int64_t begin, int64_t end) {
      run(from + begin * size, p.data(), to + begin * size, end - begin);
    });
  };
}

Kernel looped_grad(const Activation& row, const char* from, const KernelArgs& op) {
  return [loop = row.grad_loop, grain = row.grain, v = op.in(from), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD")](KernelContext& c) {
    run_loop(c, grain, c[v].numel(), c[v].data<float>(), c[dout].data<float>(), c[dx].mutable_data<float>(), loop);
  };
}

Kernel param_looped_grad(const Activation& row, const char* from, const KernelArgs& op) {
  return [loop = row.param_grad_loop, grain = row.grain, p = numbers_of(row, op), v = op.in(from),
          dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
    const float *values = c[v].data<float>(), *dy = c[dout].data<float>();
    float* to = c[dx].mutable_data<float>();
    c.parallel_for(c[v].numel(), grain, [=](int64_t begin, int64_t end) {
      loop(values + begin, dy + begin, p.data(), to + begin, end - begin);
    });
  };
}

Kernel mapped_grad(DType dtype, MapGradRun run, const Activation& row, const char* from, const KernelArgs& op) {
  return [dtype, run, grain = row.grain, p = numbers_of(row, op), v = op.in(from), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD")](KernelContext& c) {
    const auto* values = static_cast<const char*>(c[v].data(dtype));
    const auto* dy = static_cast<const char*>(c[dout].data(dtype));
    auto* to = static_cast<char*>(c[dx].mutable_data(dtype));
    const auto size = static_cast<int64_t>(dtype_size(dtype));
    c.parallel_for(c[v].numel(), grain, [=](int64_t begin, int64_t end) {
      run(values + begin * size, dy + begin * size, p.data(), to + begin * size, end - begin);
    });
  };
}

OpDef& declare_forward(const Activation& row, const ActivationRuns& runs) {
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc).source(row.source).in("X", "[...] float").out("Out", "[...] like X").may_share("X", "Out");
  for (const FloatAttr& a : row.attrs) def.attr<float>(a.name, a.value, a.doc);
  for (const char* name : row.ignores) def.ignores({name});
  AB_CHECK(row.loop || row.param_loop || runs.of_float, Internal, "{} must have a loop for float32", row.type);
  def.traits(kRowWise | kElementwise).tile(activation_tile(row, runs));
  def.infer([](InferContext& c) { c.same_as("Out", "X"); });
  using Slots = std::vector<std::string>;
  def.grad_reads(row.grad_of == GradOf::kX ? Slots{"X"} : Slots{},
                 row.grad_of == GradOf::kOut ? Slots{"Out"} : Slots{});
  def.cpu_of(DType::kFloat32, [row, runs](const KernelArgs& op) {
    if (row.loop) return looped(row, op);
    if (row.param_loop) return param_looped(row, op);
    return mapped(DType::kFloat32, runs.of_float, row.grain, numbers_of(row, op), op);
  });
  def.cpu_of(DType::kFloat64, [row, runs](const KernelArgs& op) {
    return mapped(DType::kFloat64, runs.of_double, row.grain, numbers_of(row, op), op);
  });
  def.device<float, double, float16, bfloat16>(device::map(row.type, names_of(row)));
  activation_step(def, row, {"X"}, "");
  return def;
}

TileOp gradient_tile(const char* from, const Activation& row, MapGradRun run) {
  if (row.grad_loop) return tile_of(from, "Out@GRAD", row.grain, row.grad_loop);
  const auto make = [row, from, run](const KernelArgs& op, const std::string&) -> TileLoop {
    return [v = op.in(from).first, dout = op.in("Out@GRAD").first, p = numbers_of(row, op), run,
            loop = row.param_grad_loop](const float* const* in, float* out, int64_t n) {
      loop ? loop(in[v], in[dout], p.data(), out, n) : run(in[v], in[dout], p.data(), out, n);
    };
  };
  return {.make = make, .grain = row.grain};
}

void declare_backward(const Activation& row, const ActivationRuns& runs) {
  const char* from = row.grad_of == GradOf::kX ? "X" : row.grad_of == GradOf::kOut ? "Out" : "Out@GRAD";
  OpDef& def = declare_gradient(row.type, __FILE__);
  AB_CHECK(row.grad_loop || row.param_grad_loop || runs.grad_of_float, Internal,
           "the gradient of {} must have a loop for float32", row.type);
  def.may_share("Out@GRAD", "X@GRAD")
      .grad_lod("X@GRAD", row.grad_lod)
      .tile(gradient_tile(from, row, runs.grad_of_float));
  if (row.slope) {
    def.grad(second_order::through([from, slope = row.slope](second_order::Ops& o) {
      o.is("X@GRAD", o.mul(o.in("Out@GRAD"), slope(o, o.in(from))));
    }));
  } else {
    def.grad(second_order::diagonal);
  }
  def.cpu_of(DType::kFloat32, [row, from, run = runs.grad_of_float](const KernelArgs& op) {
    if (row.grad_loop) return looped_grad(row, from, op);
    return row.param_grad_loop ? param_looped_grad(row, from, op) : mapped_grad(DType::kFloat32, run, row, from, op);
  });
  def.cpu_of(DType::kFloat64, [row, from, run = runs.grad_of_double](const KernelArgs& op) {
    return mapped_grad(DType::kFloat64, run, row, from, op);
  });
  def.device<float, double, float16, bfloat16>(DTypeFactory([row](DType dtype, const KernelArgs& op) {
    const std::string function = slopes_as_fluid(row) ? std::string(row.type) + "_as_fluid" : row.type;
    return device::map_grad(function, names_of(row))(dtype, op);
  }));
  activation_step(def, row, {from, "Out@GRAD"}, "_grad");
}

}  // namespace

OpDef& declare_activation(const Activation& row, const ActivationRuns& runs) {
  OpDef& def = declare_forward(row, runs);
  declare_backward(row, runs);
  return def;
}

void also_of(OpDef& def, DType dtype, MapRun run) {
  def.cpu_of(dtype, [dtype, run](const KernelArgs& op) { return mapped(dtype, run, kMathGrain, Numbers{}, op); });
}

}  // namespace anabranch::math
