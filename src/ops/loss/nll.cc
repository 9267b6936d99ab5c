// Negative log likelihood of classes, from logarithms of probabilities.
#include <string>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"

namespace anabranch::loss::nll_op {
namespace {

// Scores [n, classes, points], labels [n, points]; a sample is one of the n * points.
struct Samples {
  int64_t classes, points, count;
  explicit Samples(const Shape& x) : classes(x[1]), points(x.numel(2, x.rank())), count(x[0] * points) {}
  int64_t at(int64_t sample, int64_t label) const {
    return (sample / points * classes + label) * points + sample % points;
  }
};

// Calls fn(sample, element of its class, weight of that class) for all samples except the ignored ones.
template <class T, class Fn>
void each_labeled(const Samples& s, const int64_t* label, int64_t ignored, const T* weight, Fn&& fn) {
  for (int64_t i = 0; i < s.count; ++i) {
    if (label[i] == ignored) continue;
    AB_CHECK(label[i] >= 0 && label[i] < s.classes, InvalidArgument,
             "Label of sample {} must be 0 to {} or ignore_index, {}, got {}", i, s.classes - 1, ignored, label[i]);
    fn(i, s.at(i, label[i]), weight ? weight[label[i]] : T{1});
  }
}

void check_nll(const InferContext& c) {
  const Shape &x = c.in("X").shape, &label = c.in("Label").shape;
  AB_CHECK(x.rank() == 2 || x.rank() == 4, ShapeMismatch, "X must have 2 or 4 axes, got {}", x.str());
  check_dtype(c, "Label", DType::kInt64);
  const bool column = x.rank() == 2 && label.rank() == 2;
  const Shape needed = column ? Shape{x[0], 1} : x.rank() == 2 ? Shape{x[0]} : Shape{x[0], x[2], x[3]};
  AB_CHECK(compatible(label, needed), ShapeMismatch, "Label must be {} for X {}, got {}", needed.str(), x.str(),
           label.str());
  if (!c.has_in("Weight")) return;
  check_same_dtype(c, "X", "Weight");
  check_shape(c, "Weight", Shape{x[1]});
}

AB_OP(nll_loss)
    .doc(
        "With w the weight of the class that Label names: loss = -w X at that class, 0 where Label is ignore_index. "
        "Out = the losses (none), their sum (sum), or their sum by that of the weights (mean).")
    .in("X", "[N, C] or [N, C, H, W] float, logarithms of probabilities")
    .in("Label", "[N], [N, 1] or [N, H, W] int64, classes in [0, C) or ignore_index")
    .in_optional("Weight", "[C] like X: weights of the classes; 1 if not given")
    .out("Out", "[N] or [N, H, W] losses, or [1]")
    .out("Total_weight", "[1]: the sum of the weights of samples that are not ignored; 0 with reduction none")
    .attr<int64_t>("ignore_index", -100, "label of ignored samples")
    .attr<std::string>("reduction", "mean", "none, sum or mean", one_of("reduction", {"none", "sum", "mean"}))
    .infer([](InferContext& c) {
      check_nll(c);
      const Shape& x = c.in("X").shape;
      const Shape all = x.rank() == 2 ? Shape{x[0]} : Shape{x[0], x[2], x[3]};
      c.set_out("Out", c.attr<std::string>("reduction") == "none" ? all : scalar_shape(), c.in("X").dtype);
      c.set_out("Total_weight", scalar_shape(), c.in("X").dtype);
    })
    .grad_reads({"X", "Label", "Weight"}, {"Total_weight"})
    .grad_from({"Out"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const std::string how = op.attr<std::string>("reduction");
      return [none = how == "none", mean = how == "mean", ignored = op.attr<int64_t>("ignore_index"), x = op.in("X"),
              label = op.in("Label"), weight = op.in("Weight"), out = op.out("Out"),
              total = op.out("Total_weight")](KernelContext& c) {
        const T *from = c[x].data<T>(), *weights = weight ? c[weight].data<T>() : nullptr;
        T *to = none ? zeroed<T>(c, out) : nullptr, *sum_to = needed<T>(c, total);
        double sum = 0, counted = 0;
        each_labeled(Samples(c[x].shape()), c[label].data<int64_t>(), ignored, weights,
                     [&](int64_t i, int64_t at, T w) {
                       if (none) {
                         if (to) to[i] = -w * from[at];
                         return;
                       }
                       sum -= static_cast<double>(w * from[at]);
                       counted += static_cast<double>(w);
                     });
        if (sum_to) *sum_to = static_cast<T>(counted);
        if (none || !c.needs(out)) return;
        *c[out].mutable_data<T>() = static_cast<T>(mean && counted != 0 ? sum / counted : sum);
      };
    });

AB_GRAD(nll_loss)
    .doc(
        "X@GRAD = -w Out@GRAD at the class of each sample that is not ignored, divided by Total_weight for the mean, "
        "else 0.")
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const std::string how = op.attr<std::string>("reduction");
      return [none = how == "none", mean = how == "mean", ignored = op.attr<int64_t>("ignore_index"), x = op.in("X"),
              label = op.in("Label"), weight = op.in("Weight"), total = op.in("Total_weight"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        const T *d = c[dout].data<T>(), *weights = weight ? c[weight].data<T>() : nullptr;
        const T by = mean ? *c[total].data<T>() : T{1};
        T* to = zeroed<T>(c, dx);
        if (!to || by == 0) return;
        each_labeled(Samples(c[x].shape()), c[label].data<int64_t>(), ignored, weights,
                     [&](int64_t i, int64_t at, T w) { to[at] = -w * d[none ? i : 0] / by; });
      };
    });

}  // namespace
}  // namespace anabranch::loss::nll_op
