// Counts how often a ranking orders two answers to one query correctly.
#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/declare/declare.h"

namespace anabranch::metric::positive_negative_pair_op {
namespace {

constexpr const char *kCounts[] = {"PositivePair", "NegativePair", "NeutralPair"},
                     *kBefore[] = {"AccumulatePositivePair", "AccumulateNegativePair", "AccumulateNeutralPair"};

void infer(InferContext& c) {
  check_rank(c, "Score", 2, 2);
  const Shape& score = c.in("Score").shape;
  for (const char* slot : {"Label", "QueryID", "Weight"}) {
    if (c.has_in(slot)) check_shape(c, slot, Shape{score[0], 1});
  }
  for (const char* slot : {"Label", "Weight"})
    if (c.has_in(slot)) check_same_dtype(c, slot, "Score");
  check_dtype(c, "QueryID", DType::kInt64);
  int given = 0;
  for (const char* slot : kBefore) {
    if (!c.has_in(slot)) continue;
    ++given;
    check_numel(c, slot, 1);
    check_same_dtype(c, slot, "Score");
  }
  AB_CHECK(given == 0 || given == 3, InvalidArgument, "{}, {} and {} must be given together", kBefore[0], kBefore[1],
           kBefore[2]);
  const int64_t column = c.attr<int32_t>("column");
  AB_CHECK(score[1] == kUnknown || (column >= -score[1] && column < score[1]), InvalidArgument,
           "column must be from {} to {}, got {}", -score[1], score[1] - 1, column);
  for (const char* slot : kCounts) c.set_out(slot, scalar_shape(), c.in("Score").dtype);
}

template <class T> struct Pairs { T positive = 0, negative = 0, neutral = 0; };

// As in Fluid 1.8.5, two answers with equal scores count as neutral and as negative.
template <class T> struct Answers {
  const T *score, *label, *weight;
  int64_t width;

  void compare(int64_t a, int64_t b, Pairs<T>* pairs) const {
    if (label[a] == label[b]) return;
    const T w = weight ? (weight[a] + weight[b]) * static_cast<T>(0.5) : T{1};
    const T sa = score[a * width], sb = score[b * width];
    if (sa == sb) pairs->neutral += w;
    ((sa - sb) * (label[a] - label[b]) > 0 ? pairs->positive : pairs->negative) += w;
  }
};

constexpr auto kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [column = int64_t{op.attr<int32_t>("column")}, score = op.in("Score"), label = op.in("Label"),
          query = op.in("QueryID"), weight = op.in("Weight"),
          before = std::array{op.in(kBefore[0]), op.in(kBefore[1]), op.in(kBefore[2])},
          outs = std::array{op.out(kCounts[0]), op.out(kCounts[1]), op.out(kCounts[2])},
          order = std::vector<int64_t>()](KernelContext& c) mutable {
    const int64_t n = c[score].rows(), width = c[score].row_elems();
    const int64_t* of = c[query].data<int64_t>();
    order.resize(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(),
              [=](int64_t a, int64_t b) { return of[a] < of[b] || (of[a] == of[b] && a < b); });
    const Answers<T> answers{c[score].data<T>() + (column < 0 ? column + width : column), c[label].data<T>(),
                             weight ? c[weight].data<T>() : nullptr, width};
    Pairs<T> pairs;
    for (auto a = order.begin(); a != order.end(); ++a) {
      for (auto b = a + 1; b != order.end() && of[*b] == of[*a]; ++b) answers.compare(*a, *b, &pairs);
    }
    const T made[] = {pairs.positive, pairs.negative, pairs.neutral};
    for (size_t i = 0; i < 3; ++i) {
      if (!c.needs(outs[i])) continue;
      *c[outs[i]].mutable_data<T>() = made[i] + (before[i] ? *c[before[i]].data<T>() : T{0});
    }
  };
};

AB_OP(positive_negative_pair)
    .doc(
        "Counts pairs of answers to one query with different labels by whether their scores are in the order of their "
        "labels. A pair has the mean of its two weights.")
    .in("Score", "[N, columns] float: one column ranks the answers")
    .in("Label", "[N, 1] like Score: relevance of an answer")
    .in("QueryID", "[N, 1] int64: the query of an answer")
    .in_optional("AccumulatePositivePair", "[1] like Score: initial count")
    .in_optional("AccumulateNegativePair", "[1] like Score: initial count")
    .in_optional("AccumulateNeutralPair", "[1] like Score: initial count")
    .in_optional("Weight", "[N, 1] like Score: weights of the answers; 1 if not given")
    .out("PositivePair", "[1]: pairs in the order of their labels")
    .out("NegativePair", "[1]: all other pairs")
    .out("NeutralPair", "[1]: those of them with equal scores")
    .attr<int32_t>("column", -1, "column of Score; negative: from the last one back")
    .dtype_of_input("Score")
    .infer(infer)
    .no_grad("counts do not change with small changes of the values")
    .cpu<float, double>(kernel);

}  // namespace
}  // namespace anabranch::metric::positive_negative_pair_op
