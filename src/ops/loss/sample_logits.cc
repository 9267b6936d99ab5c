// A softmax over a few classes instead of all: the scores of each sample's classes and of some drawn ones, each minus
// the logarithm of its probability of being selected.
#include <algorithm>
#include <cmath>
#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/ids.h"
#include "ops/loss/class_rows.h"
#include "ops/loss/sampler.h"

namespace anabranch::loss::sample_logits_op {
namespace {

constexpr double kHit = 1e20;  // subtracted from the score of a drawn class that is a class of the sample
constexpr uint64_t kMostTries = uint64_t{1} << 24;  // draws that find too few distinct classes fail after this number

struct Columns {
  int64_t own, drawn;
  int64_t all() const { return own + drawn; }
};

void check_logits(const InferContext& c) {
  check_rank(c, "Logits", 2, 2);
  check_ids_dtype(c, "Labels");
  check_rank(c, "Labels", 2, 2);
  check_equal_rows(c, "Labels", "Logits");
}

Shape samples_shape(const InferContext& c) {
  const Shape& labels = c.in("Labels").shape;
  return {c.in("Logits").shape[0], labels[1] == kUnknown ? kUnknown : labels[1] + c.attr<int32_t>("num_samples")};
}

// A shape that describes another one and has no elements.
Shape without_numbers(Shape shape) {
  shape.push_back(0);
  return shape;
}

void infer_samples(InferContext& c) {
  check_logits(c);
  const Shape samples = samples_shape(c), &logits = c.in("Logits").shape;
  const int64_t drawn = c.attr<int32_t>("num_samples");
  AB_CHECK(logits[1] == kUnknown || drawn <= logits[1], InvalidArgument,
           "num_samples must be at most the number of classes ({}), got {}", logits[1], drawn);
  if (c.attr<bool>("use_customized_samples")) {
    check_ids_dtype(c, "CustomizedSamples");
    check_same_dtype(c, "CustomizedProbabilities", "Logits");
    check_shape(c, "CustomizedSamples", samples);
    check_shape(c, "CustomizedProbabilities", samples);
  }
  const DType dtype = c.in("Logits").dtype;
  c.set_out("Samples", samples, DType::kInt64);
  c.set_out("Probabilities", samples, dtype);
  c.set_out("SampledLogits", samples, dtype);
  c.set_out("SampledLabels", c.in("Labels").shape, DType::kInt64);
  c.set_out("LogitsDim", without_numbers(logits), dtype);
  c.set_out("LabelsDim", without_numbers(c.in("Labels").shape), DType::kInt64);
}

// Distinct classes, drawn by rank; returns the number of tries.
int64_t draw_unique(const Sampler& sampler, const Philox& random, int64_t n, std::vector<int64_t>* drawn) {
  drawn->clear();
  uint64_t tries = 0;
  while (static_cast<int64_t>(drawn->size()) < n) {
    AB_CHECK(tries < kMostTries, ResourceExhausted,
             "num_samples classes must be found: {} draws gave {} of {} distinct classes", tries, drawn->size(), n);
    const int64_t k = sampler.draw(random, tries++);
    if (std::find(drawn->begin(), drawn->end(), k) == drawn->end()) drawn->push_back(k);
  }
  return static_cast<int64_t>(tries);
}

// The probability that a class is among n distinct ones that took this number of tries.
double chance(double p, int64_t n, int64_t tries) {
  return tries == n ? p * static_cast<double>(n) : -std::expm1(static_cast<double>(tries) * std::log1p(-p));
}

template <class T>
void sample(const Sampler& sampler, const Philox& random, const int64_t* labels, int64_t rows, const Columns& columns,
            std::vector<int64_t>* drawn, int64_t* samples, T* probabilities) {
  const int64_t tries = draw_unique(sampler, random, columns.drawn, drawn);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < columns.all(); ++k) {
      const int64_t at = i * columns.all() + k;
      samples[at] = k < columns.own ? labels[i * columns.own + k] : (*drawn)[static_cast<size_t>(k - columns.own)];
      probabilities[at] = static_cast<T>(chance(sampler.probability(samples[at]), columns.drawn, tries));
    }
  }
}

template <class T>
void score_row(const T* logits, const int64_t* samples, const T* probabilities, const Columns& columns,
               bool remove_hits, T* scores) {
  const int64_t* own_end = samples + columns.own;
  for (int64_t k = 0; k < columns.all(); ++k) {
    scores[k] = logits[samples[k]];
    if (remove_hits && k >= columns.own && std::find(samples, own_end, samples[k]) != own_end) {
      scores[k] -= static_cast<T>(kHit);
    }
    scores[k] -= std::log(probabilities[k]);
  }
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  struct Scratch {
    Tensor labels, given;
    std::vector<int64_t> drawn;
  };
  return [=, key = op.random(), customized = op.attr<bool>("use_customized_samples"),
          remove_hits = op.attr<bool>("remove_accidental_hits"), requested = op.attr<int32_t>("num_samples"),
          logits = op.in("Logits"), labels = op.in("Labels"), given = op.in("CustomizedSamples"),
          given_chance = op.in("CustomizedProbabilities"), samples = op.out("Samples"),
          probabilities = op.out("Probabilities"), scores = op.out("SampledLogits"), places = op.out("SampledLabels"),
          scratch = std::make_shared<Scratch>()](KernelContext& c) {
    const int64_t rows = c[logits].rows(), classes = c[logits].row_elems();
    const Columns columns{c[labels].shape()[1], requested};
    const int64_t* y = as_int64(c[labels], &scratch->labels);
    check_ids("Labels", y, c[labels].numel(), classes);
    int64_t *chosen = c[samples].mutable_data<int64_t>(), *to = c[places].mutable_data<int64_t>();
    T *p = c[probabilities].mutable_data<T>(), *score = c[scores].mutable_data<T>();
    if (customized) {
      const int64_t* from = as_int64(c[given], &scratch->given);
      check_ids("CustomizedSamples", from, c[given].numel(), classes);
      std::copy(from, from + c[given].numel(), chosen);
      std::copy_n(c[given_chance].data<T>(), c[given_chance].numel(), p);
    } else {
      const Sampler sampler{SamplerKind::kLogUniform, classes};
      sample(sampler, Philox(with_step(key, c)), y, rows, columns, &scratch->drawn, chosen, p);
    }
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = i * columns.all();
      score_row(c[logits].data<T>() + i * classes, chosen + at, p + at, columns, remove_hits, score + at);
      for (int64_t k = 0; k < columns.own; ++k) to[i * columns.own + k] = k;
    }
  };
};

AB_OP(sample_logits)
    .doc(
        "Samples: the classes of each sample and num_samples distinct ones drawn by rank, the same for all samples; "
        "SampledLogits: their Logits minus ln(Probabilities), and minus 1e20 for a drawn class that is one of the "
        "sample's.")
    .source("Jean et al., ACL 2015, arXiv:1412.2007")
    .in("Logits", "[N, classes] float")
    .in("Labels", "[N, T] int64 below the number of classes")
    .in_optional("CustomizedSamples", "[N, T + num_samples] int64, with use_customized_samples")
    .in_optional("CustomizedProbabilities", "like CustomizedSamples, dtype of Logits")
    .out_intermediate("Samples", "[N, T + num_samples] int64")
    .out_intermediate("Probabilities", "[N, T + num_samples]: of selecting each class")
    .out_optional("LogitsDim", "empty; holds the shape of Logits")
    .out_optional("LabelsDim", "empty; holds the shape of Labels")
    .out_intermediate("SampledLogits", "[N, T + num_samples]")
    .out("SampledLabels", "[N, T] int64: positions of the sample's classes among Samples")
    .attr<bool>("use_customized_samples", false, "uses CustomizedSamples instead of drawing")
    .ignores("uniq", true)
    .attr<bool>("remove_accidental_hits", true, "ignores drawn classes that are the sample's")
    .attr<int32_t>("num_samples", 1, "number of classes to draw", at_least<int32_t>("num_samples", 1))
    .attr<int32_t>("seed", 0, "seed of the draws; 0: uses the seed of the program")
    .effects(kRandom)
    .dtype_of_input("Logits")
    .infer(infer_samples)
    .grad_reads({}, {"LogitsDim", "LabelsDim", "Samples"})
    .grad_from({"SampledLogits"})
    .grad_to({"Logits"})
    .cpu<float, double>(forward);

AB_GRAD(sample_logits)
    .doc("Logits@GRAD = SampledLogits@GRAD, summed at the classes of Samples.")
    .in("LogitsDim", "[N, classes, 0]: the shape of Logits")
    .dtype_of_input("SampledLogits@GRAD")
    .infer([](InferContext& c) {
      check_rank(c, "LogitsDim", 3, 3);
      check_rank(c, "Samples", 2, 2);
      check_same_shape(c, "Samples", "SampledLogits@GRAD");
      check_equal_rows(c, "Samples", "LogitsDim");
      const Shape logits = c.in("LogitsDim").shape.slice(0, 2);
      check_dtype(c, "Samples", DType::kInt64);
      c.set_out("Logits@GRAD", logits, c.in("SampledLogits@GRAD").dtype);
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [samples = op.in("Samples"), dscores = op.in("SampledLogits@GRAD"),
              dlogits = op.out("Logits@GRAD")](KernelContext& c) {
        const int64_t classes = c[dlogits].row_elems(), all = c[samples].row_elems();
        const int64_t* chosen = c[samples].data<int64_t>();
        check_ids("Samples", chosen, c[samples].numel(), classes);
        const T* g = c[dscores].data<T>();
        T* to = c[dlogits].mutable_data<T>();
        std::fill(to, to + c[dlogits].numel(), T{0});
        for (int64_t i = 0; i < c[samples].numel(); ++i) to[i / all * classes + chosen[i]] += g[i];
      };
    });

}  // namespace
}  // namespace anabranch::loss::sample_logits_op
