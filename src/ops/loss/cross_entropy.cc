// Cross entropy of probabilities: -log of the label's probability, or weighted by soft labels. cross_entropy2 keeps the
// label's probability for its gradient, so X can be freed.
#include <memory>

#include "ops/device/launch_loss.h"
#include "ops/loss/classes.h"

namespace anabranch::loss::cross_entropy_op {
namespace {

template <class T> struct HardLabels {  // checked labels of one run
  const int64_t* label;
  int64_t ignored;
  HardLabels(const Tensor& t, Tensor* scratch, const ClassAxis& a, int64_t ignore)
      : label(as_int64(t, scratch)), ignored(ignore) {
    check_labels(label, a.samples(), a.classes, ignore);
  }
};

// The shape of one value per sample; without a last axis if Label has none.
Shape infer_losses(const InferContext& c, bool soft) {
  const Shape one = infer_classes(c, "X", soft, -1);
  return c.in("Label").shape.rank() < one.rank() ? one.slice(0, one.rank() - 1) : one;
}

// ---- cross_entropy

template <class T> Kernel soft_forward(In x, In label, Out y) {
  return [=](KernelContext& c) {
    const ClassAxis a(c[x].shape(), -1);
    const T *p = c[x].data<T>(), *q = c[label].data<T>();
    T* out = c[y].mutable_data<T>();
    c.parallel_each(a.outer, a.grain(), [=](int64_t i) {
      T sum = 0;
      for (int64_t k = i * a.classes; k < (i + 1) * a.classes; ++k) sum += q[k] * neg_log(p[k]);
      out[i] = sum;
    });
  };
}

template <class T> Kernel soft_backward(In x, In label, In dy, Out dx) {
  return [=](KernelContext& c) {
    const ClassAxis a(c[x].shape(), -1);
    const T *p = c[x].data<T>(), *q = c[label].data<T>(), *g = c[dy].data<T>();
    T* out = c[dx].mutable_data<T>();
    c.parallel_each(a.outer, a.grain(), [=](int64_t i) {
      for (int64_t k = i * a.classes; k < (i + 1) * a.classes; ++k) out[k] = -g[i] * q[k] / p[k];
    });
  };
}

// Y, and MatchX if it is requested.
template <class T> Kernel hard_forward(const KernelArgs& op, In x, In label, Out y, Out match) {
  const int64_t ignored = op.attr<int32_t>("ignore_index");
  const auto scratch = std::make_shared<Tensor>();
  return [=](KernelContext& c) {
    const ClassAxis a(c[x].shape(), -1);
    const HardLabels<T> l(c[label], scratch.get(), a, ignored);
    const T* p = c[x].data<T>();
    T* out = c[y].mutable_data<T>();
    T* kept = c.needs(match) ? c[match].mutable_data<T>() : nullptr;
    for (int64_t i = 0; i < a.outer; ++i) {
      const T own = l.label[i] == ignored ? T{1} : p[i * a.classes + l.label[i]];
      out[i] = l.label[i] == ignored ? T{0} : neg_log(own);
      if (kept) kept[i] = own;
    }
  };
}

// own: for each sample, the probability of its label; x: all probabilities. Exactly one of the two is given.
template <class T> Kernel hard_backward(const KernelArgs& op, In x, In own, In label, In dy, Out dx) {
  const int64_t ignored = op.attr<int32_t>("ignore_index");
  const auto scratch = std::make_shared<Tensor>();
  return [=](KernelContext& c) {
    const ClassAxis a(c[dx].shape(), -1);
    const HardLabels<T> l(c[label], scratch.get(), a, ignored);
    const T *p = own ? c[own].data<T>() : c[x].data<T>(), *g = c[dy].data<T>();
    T* out = c[dx].mutable_data<T>();
    std::fill(out, out + a.outer * a.classes, T{0});
    for (int64_t i = 0; i < a.outer; ++i) {
      if (l.label[i] == ignored) continue;
      const int64_t at = i * a.classes + l.label[i];
      out[at] = -g[i] / (own ? p[i] : p[at]);
    }
  };
}

// ---- on devices

bool is_soft(const KernelArgs& op) { return op.op().has_attr("soft_label") && op.attr<bool>("soft_label"); }

// Y, and MatchX if it is requested.
template <class T> Kernel forward_there(const KernelArgs& op, Out match) {
  return [kernel = device::ByLabel::of<T>("cross_entropy", is_soft(op)), x = op.in("X"), label = op.in("Label"),
          y = op.out("Y"), match, ignored = int64_t{op.attr<int32_t>("ignore_index")}](const DeviceContext& c) {
    device::ClassArgs a = device::classes_of(ClassAxis(c[x].shape(), -1), c[label], ignored);
    a.x = device::operand(c[x]);
    a.y = device::operand(c[y]);
    if (c.needs(match)) a.loss = device::operand(c[match]);
    a.fault = device::fault_of(c);
    c.launch(kernel(c[label]), a);
  };
}

// Exactly one of x and own is given, as on the CPU.
template <class T> Kernel backward_there(const KernelArgs& op, In x, In own) {
  return [kernel = device::ByLabel::of<T>("cross_entropy_grad", is_soft(op)), x, own, label = op.in("Label"),
          dy = op.in("Y@GRAD"), dx = op.out("X@GRAD"),
          ignored = int64_t{op.attr<int32_t>("ignore_index")}](const DeviceContext& c) {
    device::ClassArgs a = device::classes_of(ClassAxis(c[dx].shape(), -1), c[label], ignored);
    if (x) a.x = device::operand(c[x]);
    if (own) a.own = device::operand(c[own]);
    a.dy = device::operand(c[dy]);
    a.y = device::operand(c[dx]);
    a.fault = device::fault_of(c);
    c.launch(kernel(c[label]), a);
  };
}

AB_OP(cross_entropy)
    .doc("Y = -log X[label], or with soft_label -sum(Label log X) over the last axis; 0 where Label is ignore_index.")
    .in("X", "[N, ..., classes] probabilities")
    .in("Label", "[N, ..., 1] or [N, ...] int64; with soft_label like X")
    .out("Y", "[N, ..., 1]")
    .attr<bool>("soft_label", false, "labels are distributions")
    .attr<int32_t>("ignore_index", -100, "label to ignore")
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      c.set_out("Y", infer_losses(c, c.attr<bool>("soft_label")), c.in("X").dtype);
      c.share_lod("Y", "X");
    })
    .grad_reads({"X", "Label"})
    .grad_to({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), label = op.in("Label");
      if (op.attr<bool>("soft_label")) return soft_forward<T>(x, label, op.out("Y"));
      return hard_forward<T>(op, x, label, op.out("Y"), Out{});
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return forward_there<T>(op, Out{});
    })
    .with(wrong_label());

AB_GRAD(cross_entropy)
    .doc("X@GRAD = -Y@GRAD / X at the label, or -Y@GRAD Label / X with soft_label.")
    .dtype_of_input("X")
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), label = op.in("Label"), dy = op.in("Y@GRAD");
      if (op.attr<bool>("soft_label")) return soft_backward<T>(x, label, dy, op.out("X@GRAD"));
      return hard_backward<T>(op, x, In{}, label, dy, op.out("X@GRAD"));
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return backward_there<T>(op, op.in("X"), In{});
    })
    .with(wrong_label());

// ---- cross_entropy2

void infer_second(InferContext& c) {
  const Shape one = infer_losses(c, false);
  const Shape& x = c.in("X").shape;
  c.set_out("Y", one, c.in("X").dtype);
  c.share_lod("Y", "X");
  c.set_out("MatchX", one, c.in("X").dtype);
  AB_CHECK(x.rank() < kMaxRank, InvalidArgument, "X must have at most {} axes, got {}", kMaxRank - 1, x.str());
  Shape kept = x;
  kept.push_back(0);
  c.set_out("XShape", kept, c.in("X").dtype);
  c.share_lod("XShape", "X");
}

void infer_second_grad(InferContext& c) {
  check_rank(c, "XShape", 2, kMaxRank);
  const Shape x = c.in("XShape").shape.slice(0, c.in("XShape").shape.rank() - 1);
  const int64_t samples = x.numel(0, x.rank() - 1);
  for (const char* slot : {"Label", "MatchX", "Y@GRAD"}) check_numel(c, slot, samples);
  check_same_dtype(c, "MatchX", "Y@GRAD");
  c.set_out("X@GRAD", x, c.in("Y@GRAD").dtype);
  c.share_lod("X@GRAD", "XShape");
}

AB_OP(cross_entropy2)
    .doc("Y = -log X[label]; 0 where Label is ignore_index. Keeps X[label] for the gradient instead of X.")
    .in("X", "[N, ..., classes] probabilities")
    .in("Label", "[N, ..., 1] or [N, ...] int64")
    .out("Y", "[N, ..., 1], or [N, ...] like Label")
    .out_intermediate("XShape", "[N, ..., classes, 0]: only its shape is used")
    .out_intermediate("MatchX", "like Y: X[label]")
    .attr<int32_t>("ignore_index", -100, "label to ignore")
    .dtype_of_input("X")
    .infer(infer_second)
    .grad([](GradContext& g) {
      g.op("cross_entropy_grad2")
          .in("Label", g.in("Label"))
          .in("MatchX", g.out("MatchX"))
          .in("XShape", g.out("XShape"))
          .in("Y@GRAD", g.dout("Y"))
          .out("X@GRAD", g.din("X"));
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return hard_forward<T>(op, op.in("X"), op.in("Label"), op.out("Y"), op.out("MatchX"));
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return forward_there<T>(op, op.out("MatchX"));
    })
    .with(wrong_label());

AB_OP(cross_entropy_grad2)
    .doc("Gradient of cross_entropy2: X@GRAD = -Y@GRAD / MatchX at the label.")
    .in("Label", "Label of cross_entropy2")
    .in("MatchX", "X[label]")
    .in("XShape", "the shape of X and a 0")
    .in("Y@GRAD", "like Y")
    .out("X@GRAD", "like X")
    .dtype_of_input("Y@GRAD")
    .infer(infer_second_grad)
    .no_grad(kNoSecondOrder)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return hard_backward<T>(op, In{}, op.in("MatchX"), op.in("Label"), op.in("Y@GRAD"), op.out("X@GRAD"));
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return backward_there<T>(op, In{}, op.in("MatchX"));
    })
    .with(wrong_label());

}  // namespace
}  // namespace anabranch::loss::cross_entropy_op
