// Normalizes each sample over groups of channels; a group of one channel is instance normalization.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/flags.h"
#include "ops/declare/attr_checks.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/workspace.h"
#include "ops/nn/blocked.h"
#include "ops/nn/channels.h"
#include "ops/nn/group_norm.h"
#include "ops/nn/group_norm_loops.h"
#include "ops/nn/norm_second_order.h"

namespace anabranch::nn::group_norm_op {
namespace {

using group_norm::Form, group_norm::Source, group_norm::groups_of;

constexpr Form kGroup{"Mean", "Variance", false}, kInstance{"SavedMean", "SavedVariance", true};

bool is_last(const ir::Op& op) { return op.has_attr("data_layout") && channels_last(op); }

int64_t check_channels(const InferContext& c, const char* image) {
  check_rank(c, image, 2, 5);
  const Shape& x = c.in(image).shape;
  const int64_t channels = is_last(c.op()) ? x[x.rank() - 1] : x[1];
  const int64_t groups = groups_of(c.op());
  AB_CHECK(
      !c.op().has_attr("groups") || (groups >= 1 && (channels == kUnknown || (channels > 0 && channels % groups == 0))),
      InvalidArgument, "groups must divide the channels of {} {}, got {}", image, x.str(), groups);
  for (const char* slot : {"Scale", "Bias"}) check_vector(c, slot, channels, image);
  return channels;
}

Shape statistics_shape(const InferContext& c, const char* image, bool flat) {
  const int64_t channels = check_channels(c, image);
  const int64_t groups = c.op().has_attr("groups") ? groups_of(c.op()) : channels;
  const Shape& x = c.in(image).shape;
  if (!flat) return Shape{x[0], groups};
  return Shape{x[0] == kUnknown || groups == kUnknown ? kUnknown : x[0] * groups};
}

template <class T> Kernel forward(const KernelArgs& op, const Form& form) {
  if (is_blocked(op.op(), kBlocked)) return group_norm::blocked_forward(op, form);
  const T epsilon = static_cast<T>(op.attr<float>("epsilon"));
  return [=, last = is_last(op.op()), groups = groups_of(op.op()), x = op.in("X"), scale = op.in("Scale"),
          bias = op.in("Bias"), y = op.out("Y"), mean = op.out(form.mean), variance = op.out(form.variance),
          inverse = form.inverse](KernelContext& c) {
    const GroupDims d(c[x].shape(), last, groups);
    const GroupSlots<T> s{c[x].data<T>(),
                          scale ? c[scale].data<T>() : nullptr,
                          bias ? c[bias].data<T>() : nullptr,
                          nullptr,
                          nullptr,
                          c[y].mutable_data<T>(),
                          c[mean].mutable_data<T>(),
                          c[variance].mutable_data<T>(),
                          nullptr,
                          nullptr,
                          nullptr};
    if (d.count() == 0) {
      std::fill(s.mean, s.mean + c[mean].numel(), T{0});
      std::fill(s.variance, s.variance + c[variance].numel(), T{0});
      return;
    }
    c.parallel_each(d.samples * d.groups, 4096 / d.count() + 1,
                    [&](int64_t k) { normalize(d, s, epsilon, inverse, k / d.groups, k % d.groups); });
  };
}

template <class T> Kernel backward(const KernelArgs& op, const Form& form) {
  if (is_blocked(op.op(), kBlocked)) return group_norm::blocked_backward(op, form);
  const T epsilon = static_cast<T>(op.attr<float>("epsilon"));
  const Source source(op, form);
  const bool centered = source.centered, of_y = source.of_y;
  return [=, last = is_last(op.op()), groups = groups_of(op.op()), x = op.in(of_y ? "Y" : "X"), scale = op.in("Scale"),
          bias = of_y ? op.in("Bias") : In{}, mean = of_y ? In{} : op.in(form.mean), variance = op.in(form.variance),
          dy = op.in("Y@GRAD"), dx = op.out("X@GRAD"), dscale = op.out("Scale@GRAD"), dbias = op.out("Bias@GRAD"),
          inverse = form.inverse](KernelContext& c) {
    const GroupDims d(c[x].shape(), last, groups);
    const T* v = c[variance].data<T>();
    GroupSlots<T> s{};
    (of_y ? s.normalized : s.x) = c[x].data<T>();
    s.scale = scale ? c[scale].data<T>() : nullptr;
    s.bias = bias ? c[bias].data<T>() : nullptr;
    s.dy = c[dy].data<T>();
    s.mean = mean ? const_cast<T*>(c[mean].data<T>()) : nullptr;  // only read here
    s.dx = zeroed<T>(c, dx);
    s.dscale = zeroed<T>(c, dscale);
    s.dbias = zeroed<T>(c, dbias);
    if (d.count() == 0) return;
    // Sums of a channel run through all samples, so that a group of channels is one worker's.
    c.parallel_for(d.groups, 4096 / std::max<int64_t>(1, d.samples * d.count()) + 1, [&](int64_t begin, int64_t end) {
      Workspace workspace;
      T* room = d.last || s.normalized ? nullptr : workspace.get<T>(2 * d.count());
      for (int64_t n = 0; n < d.samples; ++n) {
        for (int64_t g = begin; g < end; ++g) {
          const T given = v[n * d.groups + g], inv = inverse ? given : 1 / std::sqrt(given + epsilon);
          if (room)
            differentiate_channels(d, s, centered, inv, n, g, room);
          else
            differentiate(d, s, centered, inv, n, g);
        }
      }
    });
  };
}

// The arguments of both device kernels.
device::GroupNormArgs group_norm_args(const GroupDims& d, float epsilon, const Form& form) {
  device::GroupNormArgs a{};
  a.samples = d.samples, a.channels = d.channels, a.inner = d.inner, a.groups = d.groups;
  a.epsilon = static_cast<double>(epsilon);
  a.flags = (d.last ? device::kChannelsLast : 0) | (form.inverse ? device::kInverseDeviation : 0);
  return a;
}

template <class T> Kernel forward_on_device(const KernelArgs& op, const Form& form) {
  return [=, kernel = device::kernel_of<T>("group_norm"), epsilon = op.attr<float>("epsilon"), last = is_last(op.op()),
          groups = groups_of(op.op()), x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"), y = op.out("Y"),
          mean = op.out(form.mean), variance = op.out(form.variance)](const DeviceContext& c) {
    device::GroupNormArgs a = group_norm_args(GroupDims(c[x].shape(), last, groups), epsilon, form);
    a.x = device::operand(c[x]);
    if (scale) a.scale = device::operand(c[scale]);
    if (bias) a.bias = device::operand(c[bias]);
    a.y = device::operand(c[y]);
    a.mean = device::operand(c[mean]);
    a.variance = device::operand(c[variance]);
    c.launch(kernel, a);
  };
}

template <class T> Kernel backward_on_device(const KernelArgs& op, const Form& form) {
  const Source source(op, form);
  const bool of_y = source.of_y;
  return [=, kernel = device::kernel_of<T>("group_norm_grad"), epsilon = op.attr<float>("epsilon"),
          last = is_last(op.op()), groups = groups_of(op.op()), x = op.in(of_y ? "Y" : "X"), scale = op.in("Scale"),
          bias = of_y ? op.in("Bias") : In{}, mean = of_y ? In{} : op.in(form.mean), variance = op.in(form.variance),
          dy = op.in("Y@GRAD"), dx = op.out("X@GRAD"), dscale = op.out("Scale@GRAD"),
          dbias = op.out("Bias@GRAD")](const DeviceContext& c) {
    device::GroupNormArgs a = group_norm_args(GroupDims(c[x].shape(), last, groups), epsilon, form);
    a.x = device::operand(c[x]);
    if (scale) a.scale = device::operand(c[scale]);
    if (bias) a.bias = device::operand(c[bias]);
    if (mean) a.mean_in = device::operand(c[mean]);
    a.variance_in = device::operand(c[variance]);
    a.dy = device::operand(c[dy]);
    if (c.needs(dx)) a.y = device::operand(c[dx]);
    if (c.needs(dscale)) a.mean = device::operand(c[dscale]);
    if (c.needs(dbias)) a.variance = device::operand(c[dbias]);
    a.flags |= (source.centered ? 0 : device::kNotCentered) | (of_y ? device::kFromNormalized : 0);
    c.launch(kernel, a);
  };
}

void infer_forward(InferContext& c, const Form& form) {
  const Shape statistics = statistics_shape(c, "X", form.inverse);
  c.same_as("Y", "X");
  c.set_out(form.mean, statistics, c.in("X").dtype);
  c.set_out(form.variance, statistics, c.in("X").dtype);
}

void infer_backward(InferContext& c, const Form& form) {
  const char* image = form.inverse ? "X" : "Y";
  const int64_t channels = check_channels(c, image);
  const Shape statistics = statistics_shape(c, image, form.inverse);
  for (const char* slot : {form.mean, form.variance}) check_vector(c, slot, statistics.numel(), image);
  if (c.has_in("X")) check_same(c, "X", image);
  check_same(c, image, "Y@GRAD");
  grad_as(c, "X@GRAD", image);
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
    if (!c.has_out(slot)) continue;
    c.set_out(slot, c.has_in("Scale") ? c.in("Scale").shape : Shape{channels}, c.in(image).dtype);
  }
}

auto forward_of(const Form& form) {
  return [form](OpDef& def) {
    def.in("X", "[N, C, ...] or [N, ..., C] float, two to five axes");
    def.in_optional("Scale", "[C]").in_optional("Bias", "[C]").out("Y", "like X");
    def.out_intermediate(form.mean, "of each group of each sample");
    def.out_intermediate(form.variance, form.inverse ? "1 / sqrt(variance + epsilon)" : "of each group of each sample");
    def.attr<float>("epsilon", 1e-5f, "keeps the quotient finite");
    def.images({"X", "Y"}, kBlocked).infer([form](InferContext& c) { infer_forward(c, form); });
    def.cpu<float, double>([form]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op, form); });
    def.device<float, double, float16, bfloat16>(
        [form]<class T>(TypeTag<T>, const KernelArgs& op) { return forward_on_device<T>(op, form); });
  };
}

auto backward_of(const Form& form) {
  return [form](OpDef& def) {
    def.infer([form](InferContext& c) { infer_backward(c, form); });
    def.cpu<float, double>([form]<class T>(TypeTag<T>, const KernelArgs& op) { return backward<T>(op, form); });
    def.device<float, double, float16, bfloat16>(
        [form]<class T>(TypeTag<T>, const KernelArgs& op) { return backward_on_device<T>(op, form); });
  };
}

void differentiate(GradContext& g) {
  auto op = g.op("group_norm_grad").in("Scale", g.in("Scale")).in("Bias", g.in("Bias"));
  op.in("Y", g.out("Y")).in("Variance", g.out("Variance")).in("Y@GRAD", g.dout("Y"));
  if (!Flags::exact_fluid()) op.in("X", g.in("X")).in("Mean", g.out("Mean"));
  for (const char* slot : {"X", "Scale", "Bias"}) op.out(ir::grad_name(slot), g.din(slot));
}

AB_OP(group_norm)
    .doc(
        "Y = (X - mean) / sqrt(variance + epsilon) Scale + Bias, with statistics over each group of channels of a "
        "sample.")
    .source("Wu & He, ECCV 2018, arXiv:1803.08494")
    .with(forward_of(kGroup))
    .attr<int32_t>("groups", 1, "a divisor of C")
    .attr<std::string>("data_layout", "NCHW", "NCHW or NHWC", one_of("data_layout", {"NCHW", "NHWC"}))
    .traits(kRowWise)
    .grad_reads({"X", "Scale", "Bias"}, {"Y", "Mean", "Variance"})
    .grad(differentiate);
// The gradient uses Y, like that of Fluid 1.8.5; X and Mean, if given, are more accurate: they determine xhat where
// Scale is 0.
AB_GRAD(group_norm)
    .in_optional("X", "X of group_norm")
    .in_optional("Mean", "Mean of group_norm")
    .with(backward_of(kGroup));

AB_OP(instance_norm)
    .doc("Y = (X - mean) / sqrt(variance + epsilon) Scale + Bias, with statistics over each channel of a sample.")
    .source("Ulyanov et al., arXiv:1607.08022")
    .with(forward_of(kInstance))
    .grad_reads({"X", "Scale"}, {"SavedMean", "SavedVariance"});
AB_GRAD(instance_norm).with(backward_of(kInstance)).grad(second_order::through([](second_order::Ops& o) {
  const int rank = o.rank(o.in("X"));
  normalized_gradient(o, {axes_without(rank, 0, 1), axes_without(rank, 1, 1), 1, o.attr<float>("epsilon")});
}));

}  // namespace
}  // namespace anabranch::nn::group_norm_op

namespace anabranch::nn::group_norm {

// In Fluid 1.8.5, which uses only Y, the gradient of group norm without a scale is wrong.
Source::Source(const KernelArgs& op, const Form& form)
    : centered(form.inverse || op.in("Scale") || !Flags::exact_fluid()),
      of_y(!form.inverse && (!op.in("X") || !op.in(form.mean) || Flags::exact_fluid())) {}

int64_t groups_of(const ir::Op& op) { return op.has_attr("groups") ? op.attr<int32_t>("groups") : 0; }

}  // namespace anabranch::nn::group_norm
