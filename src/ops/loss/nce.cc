// Noise-contrastive estimation: each sample's classes against a few classes drawn from a noise distribution.
#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/ids.h"
#include "ops/loss/class_rows.h"
#include "ops/loss/logistic.h"
#include "ops/loss/sampler.h"

namespace anabranch::loss::nce_op {
namespace {

// Labels and drawn classes of a sample.
int64_t columns(const InferContext& c) {
  const int64_t own = c.in("Label").shape.rank() == 2 ? c.in("Label").shape[1] : 1;
  return own == kUnknown ? kUnknown : own + c.attr<int32_t>("num_neg_samples");
}

void check_nce(const InferContext& c) {
  check_class_table(c, "Input", "Weight");
  check_ids_dtype(c, "Label");
  check_rank(c, "Label", 1, 2);
  const int64_t classes = c.attr<int32_t>("num_total_classes"), n = c.in("Input").shape[0];
  const Shape& weight = c.in("Weight").shape;
  AB_CHECK(weight[0] == kUnknown || weight[0] == classes, ShapeMismatch,
           "Weight must have num_total_classes ({}) rows, got {}", classes, weight.str());
  check_equal_rows(c, "Label", "Input");
  if (c.has_in("SampleWeight")) {
    check_number_per_row(c, "SampleWeight", n);
    check_same_dtype(c, "SampleWeight", "Input");
  }
  const auto& given = c.attr<std::vector<int32_t>>("custom_neg_classes");
  const int64_t count = c.attr<int32_t>("num_neg_samples");
  AB_CHECK(given.empty() || static_cast<int64_t>(given.size()) == count, InvalidArgument,
           "custom_neg_classes must have num_neg_samples ({}) classes, got {}", count, given.size());
  for (int32_t k : given) {
    AB_CHECK(k >= 0 && k < classes, InvalidArgument, "custom_neg_classes must hold 0 to {}, got {}", classes - 1, k);
  }
  if (c.attr<int32_t>("sampler") != static_cast<int32_t>(SamplerKind::kCustom)) return;
  for (const char* slot : {"CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs"}) {
    check_numel(c, slot, classes);
    const DType needed = std::string_view(slot) == "CustomDistAlias" ? DType::kInt32 : DType::kFloat32;
    AB_CHECK(c.in(slot).dtype == needed, InvalidArgument, "{} must hold {}, got {}", slot, dtype_name(needed),
             dtype_name(c.in(slot).dtype));
  }
}

// The noise distribution from the op's inputs and attributes.
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
    // As in Fluid 1.8.5, the rarest class is never drawn by rank.
    if (kind == SamplerKind::kLogUniform) s.classes = std::max<int64_t>(1, classes - 1);
    if (kind != SamplerKind::kCustom) return s;
    s.probabilities = c[probabilities].data<float>();
    s.keep = c[keep].data<float>();
    s.alias = c[alias].data<int32_t>();
    return s;
  }
};

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const Noise noise(op);
  const auto& given = op.attr<std::vector<int32_t>>("custom_neg_classes");
  return
      [=, key = op.random(), x = op.in("Input"), label = op.in("Label"), weight = op.in("Weight"), bias = op.in("Bias"),
       sample_weight = op.in("SampleWeight"), cost = op.out("Cost"), logits = op.out("SampleLogits"),
       labels = op.out("SampleLabels"), scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const int64_t n = c[x].rows(), width = c[x].row_elems(), own = n ? c[label].numel() / n : 0,
                      all = own + noise.count;
        const int64_t* y = as_int64(c[label], scratch.get());
        check_ids("Label", y, c[label].numel(), noise.classes);
        const Sampler sampler = noise.sampler(c);
        const Philox random(with_step(key, c));
        const ClassTable<T> table{c[weight].data<T>(), bias ? c[bias].data<T>() : nullptr, width};
        const T *from = c[x].data<T>(), *factor = sample_weight ? c[sample_weight].data<T>() : nullptr;
        T *to = c[cost].mutable_data<T>(), *score = c[logits].mutable_data<T>();
        int64_t* chosen = c[labels].mutable_data<int64_t>();
        c.parallel_each(n, 8192 / (all * std::max<int64_t>(1, width)) + 1, [=, &given](int64_t i) {
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
        });
      };
};

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const Noise noise(op);
  return [=, sparse = op.attr<bool>("is_sparse"), x = op.in("Input"), label = op.in("Label"), weight = op.in("Weight"),
          bias = op.in("Bias"), sample_weight = op.in("SampleWeight"), logits = op.in("SampleLogits"),
          labels = op.in("SampleLabels"), dcost = op.in("Cost@GRAD"), dx = op.out("Input@GRAD"),
          dweight = op.out("Weight@GRAD"), dbias = op.out("Bias@GRAD")](KernelContext& c) {
    const int64_t n = c[x].rows(), width = c[x].row_elems(), own = n ? c[label].numel() / n : 0,
                  all = own + noise.count;
    const Sampler sampler = noise.sampler(c);
    const int64_t* chosen = c[labels].data<int64_t>();
    check_ids("SampleLabels", chosen, n * all, noise.classes);
    ScoreGradients<T> to({c[weight].data<T>(), nullptr, width}, noise.classes);
    if (c.needs(dx)) to.set_dx(&c[dx]);
    if (c.needs(dweight)) to.set_dtable(&c.value(dweight), sparse, n * all);
    if (c.needs(dbias)) to.set_dbias(&c[dbias]);
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
};

AB_OP(nce)
    .doc(
        "With o = sigmoid(Input . Weight[c] + Bias[c]) and b = num_neg_samples P(c): Cost = the sum of -ln(o / (o + "
        "b)) over the classes of the sample and of -ln(b / (o + b)) over those drawn from P.")
    .source("Gutmann & Hyvarinen, AISTATS 2010")
    .in("Input", "[N, D] float")
    .in("Label", "[N, T] int64: the classes of each sample")
    .in("Weight", "[num_total_classes, D]")
    .in_optional("Bias", "[num_total_classes, 1]")
    .in_optional("SampleWeight", "[N, 1], factor for each sample's cost")
    .in_optional("CustomDistProbs", "[num_total_classes] float32, with sampler 2")
    .in_optional("CustomDistAlias", "[num_total_classes] int32, alias table of the distribution")
    .in_optional("CustomDistAliasProbs", "[num_total_classes] float32, alias table of the distribution")
    .out("Cost", "[N, 1]")
    .out_intermediate("SampleLogits", "[N, T + num_neg_samples]: o")
    .out_intermediate("SampleLabels", "[N, T + num_neg_samples] int64: the classes")
    .with(table_attrs)
    .attr<int32_t>("num_total_classes", 2, "number of classes; the first extent of Weight",
                   at_least<int32_t>("num_total_classes", 1))
    .attr<int32_t>("num_neg_samples", 10, "number of classes drawn per sample", at_least<int32_t>("num_neg_samples", 1))
    .attr<int32_t>("sampler", 0, "noise: 0 uniform, 1 log-uniform, 2 the custom distribution",
                   within<int32_t>("sampler", 0, 2))
    .attr<int32_t>("seed", 0, "seed of the draws; 0: uses the seed of the program")
    .attr<std::vector<int32_t>>("custom_neg_classes", {}, "uses these classes instead of drawing")
    .effects(kRandom)
    .dtype_of_input("Input")
    .infer([](InferContext& c) {
      check_nce(c);
      const Meta& x = c.in("Input");
      c.set_out("Cost", Shape{x.shape[0], 1}, x.dtype);
      c.set_out("SampleLogits", Shape{x.shape[0], columns(c)}, x.dtype);
      c.set_out("SampleLabels", Shape{x.shape[0], columns(c)}, DType::kInt64);
    })
    .grad_reads({"Input", "Label", "Weight", "Bias", "SampleWeight", "CustomDistProbs", "CustomDistAlias",
                 "CustomDistAliasProbs"},
                {"SampleLogits", "SampleLabels"})
    .grad_to({"Input", "Weight", "Bias"})
    .cpu<float, double>(forward);

AB_GRAD(nce)
    .doc("Gradients of nce; a sparse gradient of Weight has one row per label and per drawn class.")
    .dtype_of_input("Input")
    .infer([](InferContext& c) { infer_table_gradients(c, {"Weight@GRAD"}); })
    .cpu<float, double>(backward);

}  // namespace
}  // namespace anabranch::loss::nce_op
