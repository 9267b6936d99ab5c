// Noise-contrastive estimation: each sample's own classes against a few that are drawn from the noise.
#include <memory>

#include "ops/kernels/ids.h"
#include "ops/loss/class_rows.h"
#include "ops/loss/elementwise.h"
#include "ops/loss/sampler.h"

namespace anabranch::loss {
namespace {

OpDef& nce_attrs(OpDef& def) {
  return table_attrs(def)
      .attr<int32_t>(
          "num_total_classes", 2, "classes; the extent of Weight",
          [](int32_t v) { AB_CHECK(v >= 1, InvalidArgument, "nce: num_total_classes is {}, expected at least 1", v); })
      .attr<int32_t>(
          "num_neg_samples", 10, "classes drawn for each sample",
          [](int32_t v) { AB_CHECK(v >= 1, InvalidArgument, "nce: num_neg_samples is {}, expected at least 1", v); })
      .attr<int32_t>(
          "sampler", 0, "noise: 0 uniform, 1 log-uniform, 2 the custom distribution",
          [](int32_t v) { AB_CHECK(v >= 0 && v <= 2, InvalidArgument, "nce: sampler is {}, expected 0 to 2", v); })
      .attr<int32_t>("seed", 0, "of the draws; 0: that of the program")
      .attr<std::vector<int32_t>>("custom_neg_classes", {}, "take these classes instead of drawing");
}

OpDef& nce_ins(OpDef& def) {
  return def.in("Input", "[N, D] float")
      .in("Label", "[N, T] int64: the classes of each sample")
      .in("Weight", "[num_total_classes, D]")
      .in_optional("Bias", "[num_total_classes, 1]")
      .in_optional("SampleWeight", "[N, 1], a factor of each sample's cost")
      .in_optional("CustomDistProbs", "[num_total_classes] float32, with sampler 2")
      .in_optional("CustomDistAlias", "[num_total_classes] int32, alias table of the distribution")
      .in_optional("CustomDistAliasProbs", "[num_total_classes] float32, alias table of the distribution");
}

// Labels and drawn classes of a sample.
int64_t columns(const InferContext& c) {
  const int64_t own = c.in("Label").shape.rank() == 2 ? c.in("Label").shape[1] : 1;
  return own == kUnknown ? kUnknown : own + c.attr<int32_t>("num_neg_samples");
}

void check_nce(const InferContext& c) {
  check_class_table(c, "Input", "Weight");
  check_integers(c, "Label");
  check_rank(c, "Label", 1, 2);
  const int64_t classes = c.attr<int32_t>("num_total_classes"), n = c.in("Input").shape[0];
  const Shape &label = c.in("Label").shape, &weight = c.in("Weight").shape;
  AB_CHECK(weight[0] == kUnknown || weight[0] == classes, ShapeMismatch, "{}: Weight is {}, num_total_classes is {}",
           op_name(c), weight.str(), classes);
  AB_CHECK(n == kUnknown || label[0] == kUnknown || n == label[0], ShapeMismatch,
           "{}: Input is {}, Label is {}; they must have as many rows", op_name(c), c.in("Input").shape.str(),
           label.str());
  if (c.has_in("SampleWeight")) {
    check_numel(c, "SampleWeight", n);
    check_same_dtype(c, "SampleWeight", "Input");
  }
  const auto& given = c.attr<std::vector<int32_t>>("custom_neg_classes");
  AB_CHECK(given.empty() || static_cast<int64_t>(given.size()) == c.attr<int32_t>("num_neg_samples"), InvalidArgument,
           "{}: custom_neg_classes has {} classes, num_neg_samples is {}", op_name(c), given.size(),
           c.attr<int32_t>("num_neg_samples"));
  for (int32_t k : given) {
    AB_CHECK(k >= 0 && k < classes, InvalidArgument, "{}: custom_neg_classes holds {}, expected 0 to {}", op_name(c), k,
             classes - 1);
  }
  if (c.attr<int32_t>("sampler") != static_cast<int32_t>(SamplerKind::kCustom)) return;
  for (const char* slot : {"CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs"}) {
    check_numel(c, slot, classes);
    const DType wanted = std::string_view(slot) == "CustomDistAlias" ? DType::kInt32 : DType::kFloat32;
    AB_CHECK(c.in(slot).dtype == wanted, InvalidArgument, "{}: {} holds {}, expected {}", op_name(c), slot,
             dtype_name(c.in(slot).dtype), dtype_name(wanted));
  }
}

// The noise as the op's inputs and attributes give it.
struct Noise {
  SamplerKind kind;
  int64_t classes, count;
  In probabilities, alias, keep;
  explicit Noise(const KernelArgs& op)
      : kind(static_cast<SamplerKind>(op.attr<int32_t>("sampler"))),
        classes(op.attr<int32_t>("num_total_classes")),
        count(op.attr<int32_t>("num_neg_samples")),
        probabilities(op.in("CustomDistProbs")),
        alias(op.in("CustomDistAlias")),
        keep(op.in("CustomDistAliasProbs")) {}
  Sampler sampler(const KernelContext& c) const {
    Sampler s{kind, classes};
    // As in the original the rarest class is never drawn by rank.
    if (kind == SamplerKind::kLogUniform) s.classes = std::max<int64_t>(1, classes - 1);
    if (kind != SamplerKind::kCustom) return s;
    s.probabilities = c[probabilities].data<float>();
    s.keep = c[keep].data<float>();
    s.alias = c[alias].data<int32_t>();
    return s;
  }
};

template <class T> Kernel forward(const KernelArgs& op) {
  const Noise noise(op);
  const auto& given = op.attr<std::vector<int32_t>>("custom_neg_classes");
  return
      [=, key = op.random(), x = op.in("Input"), label = op.in("Label"), weight = op.in("Weight"), bias = op.in("Bias"),
       sample_weight = op.in("SampleWeight"), cost = op.out("Cost"), logits = op.out("SampleLogits"),
       labels = op.out("SampleLabels"), scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const int64_t n = c[x].rows(), width = c[x].row_elems(), own = n ? c[label].numel() / n : 0,
                      all = own + noise.count;
        const int64_t* y = as_int64(c[label], scratch.get());
        check_ids("nce: Label", y, c[label].numel(), noise.classes);
        const Sampler sampler = noise.sampler(c);
        const Philox random(with_step(key, c));
        const ClassTable<T> table{c[weight].data<T>(), bias ? c[bias].data<T>() : nullptr, width};
        const T *from = c[x].data<T>(), *factor = sample_weight ? c[sample_weight].data<T>() : nullptr;
        T *to = c[cost].template mutable_data<T>(), *score = c[logits].template mutable_data<T>();
        int64_t* chosen = c[labels].template mutable_data<int64_t>();
        c.parallel_for(n, 8192 / (all * std::max<int64_t>(1, width)) + 1, [=, &given](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            T sum = 0;
            for (int64_t k = 0; k < all; ++k) {
              const int64_t drawn = k - own, at = i * all + k;
              chosen[at] = k < own          ? y[i * own + k]
                           : !given.empty() ? given[static_cast<size_t>(drawn)]
                                            : sampler.draw(random, static_cast<uint64_t>(i * noise.count + drawn));
              const T o = logistic(table.score(from + i * width, chosen[at]));
              const T b = static_cast<T>(sampler.probability(chosen[at]) * static_cast<double>(noise.count));
              score[at] = o;
              sum -= std::log((k < own ? o : b) / (o + b));
            }
            to[i] = factor ? factor[i] * sum : sum;
          }
        });
      };
}

template <class T> Kernel backward(const KernelArgs& op) {
  const Noise noise(op);
  return [=, sparse = op.attr<bool>("is_sparse"), x = op.in("Input"), label = op.in("Label"), weight = op.in("Weight"),
          bias = op.in("Bias"), sample_weight = op.in("SampleWeight"), logits = op.in("SampleLogits"),
          labels = op.in("SampleLabels"), dcost = op.in("Cost@GRAD"), dx = op.out("Input@GRAD"),
          dweight = op.out("Weight@GRAD"), dbias = op.out("Bias@GRAD")](KernelContext& c) {
    const int64_t n = c[x].rows(), width = c[x].row_elems(), own = n ? c[label].numel() / n : 0,
                  all = own + noise.count;
    const Sampler sampler = noise.sampler(c);
    const int64_t* chosen = c[labels].template data<int64_t>();
    check_ids("nce_grad: SampleLabels", chosen, n * all, noise.classes);
    ScoreGradients<T> to({c[weight].data<T>(), nullptr, width}, noise.classes);
    if (c.wants(dx)) to.want_samples(&c[dx]);
    if (c.wants(dweight)) to.want_table(&c.value(dweight), sparse, n * all);
    if (c.wants(dbias)) to.want_bias(&c[dbias]);
    const T *from = c[x].data<T>(), *g = c[dcost].data<T>(), *score = c[logits].data<T>();
    const T* factor = sample_weight ? c[sample_weight].data<T>() : nullptr;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < all; ++k) {
        const int64_t at = i * all + k;
        const T o = score[at];
        const T b = static_cast<T>(sampler.probability(chosen[at]) * static_cast<double>(noise.count));
        const T slope = (k < own ? -b : o) * (1 - o) / (o + b);
        to.add(i, from + i * width, chosen[at], g[i] * (factor ? factor[i] : T{1}) * slope);
      }
    }
  };
}

[[maybe_unused]] OpDef& nce =
    nce_attrs(nce_ins(declare_op("nce", __FILE__)))
        .doc(
            "With o = sigmoid(Input . Weight[c] + Bias[c]) and b = num_neg_samples P(c): Cost is the sum of "
            "-ln(o / (o + b)) over the classes of the sample and of -ln(b / (o + b)) over those drawn from P.")
        .source("Gutmann & Hyvarinen, AISTATS 2010")
        .out("Cost", "[N, 1]")
        .out_intermediate("SampleLogits", "[N, T + num_neg_samples]: o")
        .out_intermediate("SampleLabels", "[N, T + num_neg_samples] int64: the classes")
        .effects(kRandom)
        .dtype_of_input("Input")
        .infer([](InferContext& c) {
          check_nce(c);
          const Meta& x = c.in("Input");
          c.set_out("Cost", Shape{x.shape[0], 1}, x.dtype);
          c.set_out("SampleLogits", Shape{x.shape[0], columns(c)}, x.dtype);
          c.set_out("SampleLabels", Shape{x.shape[0], columns(c)}, DType::kInt64);
        })
        .grad([](GradContext& g) {
          GradOp op = g.op("nce_grad");
          for (const char* slot : {"Input", "Label", "Weight", "Bias", "SampleWeight", "CustomDistProbs",
                                   "CustomDistAlias", "CustomDistAliasProbs"}) {
            op.in(slot, g.in(slot));
          }
          op.in("SampleLogits", g.out("SampleLogits")).in("SampleLabels", g.out("SampleLabels"));
          op.in("Cost@GRAD", g.dout("Cost"));
          for (const char* slot : {"Input", "Weight", "Bias"}) op.out(std::string(slot) + "@GRAD", g.din(slot));
        })
        .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

[[maybe_unused]] OpDef& nce_grad =
    nce_attrs(nce_ins(declare_op("nce_grad", __FILE__)))
        .doc("Gradients of nce; a sparse one of Weight has a row for each label and each class drawn.")
        .in("SampleLogits", "from nce")
        .in("SampleLabels", "from nce")
        .in("Cost@GRAD", "as Cost")
        .out_optional("Input@GRAD", "as Input")
        .out_optional("Weight@GRAD", "as Weight, dense or sparse")
        .out_optional("Bias@GRAD", "as Bias")
        .dtype_of_input("Input")
        .infer([](InferContext& c) {
          check_nce(c);
          const int64_t n = c.in("Input").shape[0], all = columns(c);
          check_numel(c, "Cost@GRAD", n);
          check_same_dtype(c, "Cost@GRAD", "Input");
          for (const char* slot : {"SampleLogits", "SampleLabels"}) {
            check_numel(c, slot, n == kUnknown || all == kUnknown ? kUnknown : n * all);
          }
          check_same_dtype(c, "SampleLogits", "Input");
          AB_CHECK(c.in("SampleLabels").dtype == DType::kInt64, InvalidArgument, "nce_grad: SampleLabels holds {}",
                   dtype_name(c.in("SampleLabels").dtype));
          grad_as(c, "Input@GRAD", "Input");
          grad_as(c, "Weight@GRAD", "Weight");
          grad_as_given(c, "Bias@GRAD", "Bias");
          if (c.has_out("Weight@GRAD") && c.attr<bool>("is_sparse")) {
            c.out("Weight@GRAD").kind = VarKind::kSelectedRows;
          }
        })
        .no_grad(kOnce)
        .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); });

}  // namespace
}  // namespace anabranch::loss
