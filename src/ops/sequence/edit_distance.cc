// Edit distance: the number of tokens to insert, delete or replace to convert one sequence to another.
#include <algorithm>
#include <array>

#include "ops/sequence/spans.h"

namespace anabranch::sequence::edit_distance_op {
namespace {

constexpr int64_t kGrain = 4096;

// `row` must have room for n + 1 numbers: the distances of the first i tokens of a to all prefixes of b.
int64_t distance(const int64_t* a, int64_t m, const int64_t* b, int64_t n, int64_t* row) {
  for (int64_t j = 0; j <= n; ++j) row[j] = j;
  for (int64_t i = 0; i < m; ++i) {
    int64_t before = row[0];  // one token less on both sides
    row[0] = i + 1;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t replaced = before + (a[i] != b[j]);
      before = row[j + 1];
      row[j + 1] = std::min({replaced, before + 1, row[j] + 1});
    }
  }
  return row[n];
}

bool dense(const InferContext& c) { return c.has_in("HypsLength"); }

void infer(InferContext& c) {
  int64_t batch = kUnknown;
  for (const char* slot : {"Hyps", "Refs"}) {
    check_ids_dtype(c, slot);
    check_rank(c, slot, 2, 2);
  }
  AB_CHECK(c.has_in("HypsLength") == c.has_in("RefsLength"), InvalidArgument,
           "HypsLength and RefsLength must be given together");
  if (dense(c)) {
    const int64_t a = c.in("Hyps").shape[0], b = c.in("Refs").shape[0];
    AB_CHECK(a < 0 || b < 0 || a == b, ShapeMismatch, "Hyps and Refs must have the same number of rows, got {} and {}",
             a, b);
    batch = a < 0 ? b : a;
    check_lengths(c, "HypsLength", batch);
    check_lengths(c, "RefsLength", batch);
  } else {
    for (const char* slot : {"Hyps", "Refs"}) check_shape(c, slot, Shape{kUnknown, 1});
    if (c.runtime()) {
      const int64_t a = count(outer_level(c, "Hyps")), b = count(outer_level(c, "Refs"));
      AB_CHECK(a == b, InvalidArgument, "Hyps and Refs must have the same number of sequences, got {} and {}", a, b);
      batch = a;
    }
  }
  c.set_out("Out", Shape{batch, 1}, DType::kFloat32);
  c.set_out("SequenceNum", Shape{1}, DType::kInt64);
}

struct Scratch {
  std::array<Tensor, 4> tensors;
  std::vector<int64_t> rows;
};

Spans spans_of(const KernelContext& c, In x, In length, const char* slot, Tensor* scratch) {
  if (!length) return Spans(c[x].lod().front());
  const Shape& shape = c[x].shape();
  return {slot, as_int64(c[length], scratch), shape[0], shape[1]};
}

Kernel kernel(const KernelArgs& op) {
  const In hyps = op.in("Hyps"), refs = op.in("Refs");
  const In hyps_length = op.in("HypsLength"), refs_length = op.in("RefsLength");
  const Out out = op.out("Out"), number = op.out("SequenceNum");
  const bool normalized = op.attr<bool>("normalized");
  return [=, scratch = std::make_shared<Scratch>()](KernelContext& c) {
    auto& t = scratch->tensors;
    const Spans a = spans_of(c, hyps, hyps_length, "HypsLength", t.data());
    const Spans b = spans_of(c, refs, refs_length, "RefsLength", &t[1]);
    const int64_t *from = as_int64(c[hyps], &t[2]), *to = as_int64(c[refs], &t[3]);
    int64_t longest = 0;
    for (int64_t s = 0; s < b.count(); ++s) {
      AB_CHECK(!normalized || b.rows(s) > 0, InvalidArgument,
               "Refs must not be empty where distances are normalized, got an empty sequence {}", s);
      longest = std::max(longest, b.rows(s));
    }
    scratch->rows.resize(static_cast<size_t>(b.count() * (longest + 1)));
    float* distances = c[out].mutable_data<float>();
    const int64_t grain = kGrain / ((longest + 1) * (longest + 1)) + 1;
    c.parallel_each(b.count(), grain, [&](int64_t s) {
      int64_t* row = scratch->rows.data() + s * (longest + 1);
      const int64_t d = distance(from + a.begin(s), a.rows(s), to + b.begin(s), b.rows(s), row);
      distances[s] = static_cast<float>(d);
      if (normalized) distances[s] /= static_cast<float>(b.rows(s));
    });
    if (c.needs(number)) c[number].mutable_data<int64_t>()[0] = b.count();
  };
}

AB_OP(edit_distance)
    .doc(
        "Out = the number of tokens to insert, delete or replace to convert a sequence of Hyps to that of Refs; "
        "normalized: divided by the length of the sequence of Refs.")
    .source("Levenshtein, Soviet Physics Doklady 10, 1966")
    .in("Hyps", "[rows, 1] int32 or int64 with LoD (its outermost offsets), or [batch, rows] with HypsLength")
    .in("Refs", "like Hyps")
    .in_optional("HypsLength", "[batch] or [batch, 1] int32 or int64")
    .in_optional("RefsLength", "[batch] or [batch, 1] int32 or int64")
    .out("SequenceNum", "[1] int64, the number of sequences")
    .out("Out", "[sequences, 1] float32")
    .attr<bool>("normalized", false, "divides by the length of the sequence of Refs")
    .infer(infer)
    .no_grad(kNotDifferentiable)
    .cpu_any(kernel);

}  // namespace
}  // namespace anabranch::sequence::edit_distance_op
