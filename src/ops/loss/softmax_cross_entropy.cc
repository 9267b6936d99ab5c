// Softmax and its cross entropy in one op: from logits, without rounding the probabilities.
#include <memory>

#include "base/flags.h"
#include "ops/device/launch_loss.h"
#include "ops/loss/classes.h"

namespace anabranch::loss::softmax_cross_entropy_op {
namespace {

// Losses of the columns [first, first + columns) of a block: -log softmax[label], or -sum(label log softmax).
template <class T> struct Columns {
  int64_t first, count;
  const Norm<T>* norms;

  void soft(const ClassAxis& a, const T* x, const T* label, T* loss) const {
    for (int64_t j = 0; j < count; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < a.classes; ++k) {
        const int64_t at = k * a.inner + first + j;
        sum -= label[at] * norms[j].log_softmax(x[at]);
      }
      loss[first + j] = sum;
    }
  }
  void hard(const ClassAxis& a, const T* x, const int64_t* label, int64_t ignored, T* loss) const {
    for (int64_t j = 0; j < count; ++j) {
      const int64_t own = label[first + j];
      loss[first + j] = own == ignored ? T{0} : -norms[j].log_softmax(x[own * a.inner + first + j]);
    }
  }
};

struct Options {
  int axis;
  bool soft;
  int64_t ignored;
  explicit Options(const ir::Op& op)
      : axis(op.attr<int32_t>("axis")), soft(op.attr<bool>("soft_label")), ignored(op.attr<int32_t>("ignore_index")) {}
};

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In logits = op.in("Logits"), label = op.in("Label");
  const Out softmax = op.out("Softmax"), loss_out = op.out("Loss");
  const Options o(op.op());
  const auto scratch = std::make_shared<Tensor>();
  return [=](KernelContext& c) {
    const ClassAxis a(c[logits].shape(), o.axis);
    const T* x = c[logits].data<T>();
    const int64_t* hard = o.soft ? nullptr : as_int64(c[label], scratch.get());
    if (hard) check_labels(hard, a.samples(), a.classes, o.ignored);
    const T* soft = o.soft ? c[label].data<T>() : nullptr;
    T *p = c[softmax].mutable_data<T>(), *out = c[loss_out].mutable_data<T>();
    c.parallel_each(a.outer, a.grain(), [&](int64_t i) {
      const T* from = x + i * a.block();
      T* own = out + i * a.inner;
      softmax_block(from, a.classes, a.inner, p + i * a.block(), [&](int64_t first, int64_t n, const Norm<T>* norms) {
        const Columns<T> columns{first, n, norms};
        if (soft) {
          columns.soft(a, from, soft + i * a.block(), own);
        } else {
          columns.hard(a, from, hard + i * a.inner, o.ignored, own);
        }
      });
    });
  };
};

// The gradient of one row of classes with label `own`, or none. dx may alias p.
template <class T> void one_sample(const T* p, int64_t classes, int64_t own, T g, T* dx) {
  const bool there = own >= 0 && own < classes;
  const T at_own = there ? (p[own] - T{1}) * g : T{0};
  for (int64_t k = 0; k < classes; ++k) dx[k] = p[k] * g;
  if (there) dx[own] = at_own;
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In softmax = op.in("Softmax"), label = op.in("Label"), dloss = op.in("Loss@GRAD");
  const Out dlogits = op.out("Logits@GRAD");
  const Options o(op.op());
  // Fluid 1.8.5 gives ignored samples a loss of 0 but the gradient of their label.
  const bool ignores = !Flags::exact_fluid();
  const auto scratch = std::make_shared<Tensor>();
  return [=](KernelContext& c) {
    const ClassAxis a(c[softmax].shape(), o.axis);
    const T *p = c[softmax].data<T>(), *g = c[dloss].data<T>();
    const int64_t* hard = o.soft ? nullptr : as_int64(c[label], scratch.get());
    if (hard) check_labels(hard, a.samples(), a.classes, o.ignored);
    const T* soft = o.soft ? c[label].data<T>() : nullptr;
    T* dx = c[dlogits].mutable_data<T>();
    c.parallel_for(a.outer, a.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (hard && a.inner == 1) {
          T* row = dx + i * a.classes;
          if (ignores && hard[i] == o.ignored) {
            std::fill(row, row + a.classes, T{0});
          } else {
            one_sample(p + i * a.classes, a.classes, hard[i], g[i], row);
          }
          continue;
        }
        for (int64_t k = 0; k < a.classes; ++k) {
          const int64_t row = (i * a.classes + k) * a.inner;
          for (int64_t j = 0; j < a.inner; ++j) {
            const int64_t sample = i * a.inner + j;
            const T target = soft ? soft[row + j] : static_cast<T>(hard[sample] == k);
            dx[row + j] = ignores && hard && hard[sample] == o.ignored ? T{0} : (p[row + j] - target) * g[sample];
          }
        }
      }
    });
  };
};

constexpr auto forward_there = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const Options o(op.op());
  return [o, kernel = device::ByLabel::of<T>("softmax_cross_entropy", o.soft), logits = op.in("Logits"),
          label = op.in("Label"), softmax = op.out("Softmax"), loss = op.out("Loss")](const DeviceContext& c) {
    device::ClassArgs a = device::classes_of(ClassAxis(c[logits].shape(), o.axis), c[label], o.ignored);
    a.x = device::operand(c[logits]);
    a.y = device::operand(c[softmax]);
    a.loss = device::operand(c[loss]);
    a.fault = device::fault_of(c);
    c.launch(kernel(c[label]), a);
  };
};

constexpr auto backward_there = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const Options o(op.op());
  const int32_t flags = Flags::exact_fluid() ? 0 : device::kIgnoredHaveNoGradient;  // see backward()
  return [o, flags, kernel = device::ByLabel::of<T>("softmax_cross_entropy_grad", o.soft), softmax = op.in("Softmax"),
          label = op.in("Label"), dloss = op.in("Loss@GRAD"), dlogits = op.out("Logits@GRAD")](const DeviceContext& c) {
    device::ClassArgs a = device::classes_of(ClassAxis(c[softmax].shape(), o.axis), c[label], o.ignored);
    a.x = device::operand(c[softmax]);
    a.dy = device::operand(c[dloss]);
    a.y = device::operand(c[dlogits]);
    a.flags = flags;
    a.fault = device::fault_of(c);
    c.launch(kernel(c[label]), a);
  };
};

AB_OP(softmax_with_cross_entropy)
    .doc(
        "Softmax = the softmax of Logits over `axis`, and its cross entropy with Label: Loss = log(sum exp(Logits)) - "
        "Logits[label], or with soft_label -sum(Label log Softmax). 0 where Label is ignore_index. Logits are bounded "
        "below by 64 less than the largest on the axis.")
    .in("Logits", "[..., classes, ...] float")
    .in("Label", "like Logits with extent 1 on axis, int64; with soft_label like Logits")
    .out_intermediate("Softmax", "like Logits")
    .out("Loss", "like Logits with extent 1 on axis")
    .attr<bool>("soft_label", false, "labels are distributions")
    .attr<int32_t>("ignore_index", -100, "label to ignore")
    .attr<int32_t>("axis", -1, "axis of the classes")
    .ignores("numeric_stable_mode", true)
    .dtype_of_input("Logits")
    .infer([](InferContext& c) {
      const Shape one = infer_classes(c, "Logits", c.attr<bool>("soft_label"), c.attr<int32_t>("axis"));
      c.same_as("Softmax", "Logits");
      c.set_out("Loss", one, c.in("Logits").dtype);
      c.share_lod("Loss", "Logits");
    })
    .grad_reads({"Label"}, {"Softmax"})
    .grad_to({"Logits"})
    .cpu<float, double>(forward)
    .device<float, double, float16, bfloat16>(forward_there)
    .with(wrong_label());

AB_GRAD(softmax_with_cross_entropy)
    .doc("Logits@GRAD = (Softmax - Label) Loss@GRAD, with Label as one-hot rows unless it is soft.")
    .dtype_of_input("Softmax")
    .may_share("Softmax", "Logits@GRAD")
    .infer([](InferContext& c) {
      const Shape one = infer_classes(c, "Softmax", c.attr<bool>("soft_label"), c.attr<int32_t>("axis"));
      check_numel(c, "Loss@GRAD", one.numel());
      grad_as(c, "Logits@GRAD", "Softmax");
    })
    .cpu<float, double>(backward)
    .device<float, double, float16, bfloat16>(backward_there)
    .with(wrong_label());

}  // namespace
}  // namespace anabranch::loss::softmax_cross_entropy_op
