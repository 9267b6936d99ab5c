// Elementwise losses on devices: "log_loss", "hinge_loss", "teacher_student", "kldiv_loss", "sigmoid_cross_entropy",
// and their "_grad", "label_smooth"; "map/huber" and "map/smooth_l1" for differences.
#include "ops/device/args_rows.h"
#include "ops/device/fold_rows.h"
#include "ops/loss/loss_functions.h"
#include "ops/math/map_kernel.h"

namespace anabranch::device {

struct LogLoss {  // p: epsilon
  template <class C> AB_HD static C of(C x, C y, C, const C* p) { return loss::log_loss(x, y, p[0]); }
};
struct LogLossGrad {
  template <class C> AB_HD static C of(C x, C y, C dy, const C* p) { return dy * loss::log_loss_slope(x, y, p[0]); }
};
struct HingeLoss {
  template <class C> AB_HD static C of(C x, C y, C, const C*) { return loss::hinge(x, y); }
};
struct HingeLossGrad {
  template <class C> AB_HD static C of(C x, C y, C dy, const C*) { return dy * loss::hinge_slope(x, y); }
};
struct TeacherStudent {
  template <class C> AB_HD static C of(C x, C y, C, const C*) { return loss::teacher_student(loss::softplus(x), x, y); }
};
struct TeacherStudentGrad {  // p: low, high
  template <class C> AB_HD static C of(C x, C y, C dy, const C* p) {
    return dy * loss::teacher_student_slope(x, y, p[0], p[1]);
  }
};
struct Kldiv {
  template <class C> AB_HD static C of(C x, C y, C, const C*) { return loss::kldiv(x, y); }
};
struct KldivGrad {  // p: the divisor of the loss
  template <class C> AB_HD static C of(C, C y, C dy, const C* p) { return loss::kldiv_slope(y, dy, p[0]); }
};

// dy: missing, one per element, or one for all.
template <class F> struct Loss {
  using Args = LossArgs;
  template <class T> struct Body {
    const T *x, *label, *dy;
    T* y;
    bool one;
    Numbers<T> numbers;
    AB_HD void operator()(int64_t i) const {
      const Compute<T> d = dy ? load(dy[one ? 0 : i]) : Compute<T>(0);
      store(y + i, F::of(load(x[i]), load(label[i]), d, numbers.p));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(
        launch, a.n,
        Body<T>{a.x.get<T>(), a.label.get<T>(), a.dy.get<T>(), a.y.get<T>(), a.dy.count<T>() == 1, Numbers<T>(a.p)});
  }
};

// If the loss is divided by the number of labels that are not ignored, this counts them first.
template <bool kGradient> struct SigmoidCrossEntropy {
  using Args = LossArgs;
  template <class T> struct Count {
    using Wide = int64_t;
    const T* label;
    Compute<T> ignored;
    int64_t* found;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t, int64_t i) const {
      return load(label[i]) != ignored;
    }  // compares whole labels, not their integer parts
    AB_HD void put(int64_t, Wide total) const { *found = total > 1 ? total : 1; }
  };
  template <class T> struct Body {
    const T *x, *label, *dy;
    T* y;
    Compute<T> ignored;
    const int64_t* over;
    AB_HD void operator()(int64_t i) const {
      const Compute<T> v = load(x[i]), target = load(label[i]);
      Compute<T> result;
      if constexpr (kGradient)
        result = (loss::logistic(v) - target) * load(dy[i]);
      else
        result = loss::softplus(v) - v * target;
      if (over) result /= static_cast<Compute<T>>(*over);
      store(y + i, loss::is_ignored(target, ignored) ? Compute<T>(0) : result);
    }
  };
  static bool counts(const Args& a) { return (a.flags & 1) != 0; }
  template <class T> static size_t room(const Args& a) {
    return counts(a) ? sizeof(int64_t) + fold_room<int64_t>(1, a.n, Neighbors::kElements) : 0;
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const auto ignored = static_cast<Compute<T>>(a.p[0]);
    int64_t* found = counts(a) ? launch.workspace.get<int64_t>() : nullptr;
    if (found) {
      const Count<T> count{a.label.get<T>(), ignored, found};
      if (const int failed = fold_rows(launch, 1, a.n, Neighbors::kElements, count, found + 1)) return failed;
    }
    return each(launch, a.n, Body<T>{a.x.get<T>(), a.label.get<T>(), a.dy.get<T>(), a.y.get<T>(), ignored, found});
  }
};

struct LabelSmooth {
  using Args = LossArgs;
  template <class T> struct Body {
    const T *x, *prior;
    T* y;
    int64_t classes;
    Compute<T> epsilon;
    AB_HD void operator()(int64_t i) const {
      const Compute<T> equal = epsilon / static_cast<Compute<T>>(classes > 1 ? classes : 1);
      store(y + i, (1 - epsilon) * load(x[i]) + (prior ? epsilon * load(prior[i % classes]) : equal));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n,
                Body<T>{a.x.get<T>(), a.prior.get<T>(), a.y.get<T>(), a.classes, static_cast<Compute<T>>(a.p[0])});
  }
};

AB_KERNEL("log_loss", Loss<LogLoss>, float, double, half, bfloat16);
AB_KERNEL("log_loss_grad", Loss<LogLossGrad>, float, double, half, bfloat16);
AB_KERNEL("hinge_loss", Loss<HingeLoss>, float, double, half, bfloat16);
AB_KERNEL("hinge_loss_grad", Loss<HingeLossGrad>, float, double, half, bfloat16);
AB_KERNEL("teacher_student", Loss<TeacherStudent>, float, double, half, bfloat16);
AB_KERNEL("teacher_student_grad", Loss<TeacherStudentGrad>, float, double, half, bfloat16);
AB_KERNEL("kldiv_loss", Loss<Kldiv>, float, double, half, bfloat16);
AB_KERNEL("kldiv_loss_grad", Loss<KldivGrad>, float, double, half, bfloat16);
AB_MAP("huber", loss::Huber);
AB_MAP("smooth_l1", loss::SmoothL1);
AB_KERNEL("sigmoid_cross_entropy", SigmoidCrossEntropy<false>, float, double, half, bfloat16);
AB_KERNEL("sigmoid_cross_entropy_grad", SigmoidCrossEntropy<true>, float, double, half, bfloat16);
AB_KERNEL("label_smooth", LabelSmooth, float, double, half, bfloat16);

}  // namespace anabranch::device
