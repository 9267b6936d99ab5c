// Shared by the ops of conditional random fields: their inputs and sequences.
#pragma once
#include "ops/sequence/spans.h"

namespace anabranch::sequence {

// Emission [rows, tags] with LoD, or [batch, rows, tags] with Length; Transition [tags + 2, tags]; Label with one tag
// per row of Emission.
inline void check_crf(const InferContext& c) {
  const bool dense = c.has_in("Length");
  check_rank(c, "Emission", dense ? 3 : 2, dense ? 3 : 2);
  check_rank(c, "Transition", 2, 2);
  check_same_dtype(c, "Emission", "Transition");
  const Shape &x = c.in("Emission").shape, &w = c.in("Transition").shape;
  const int64_t tags = x[x.rank() - 1];
  AB_CHECK(tags != 0, InvalidArgument, "Emission must have at least one tag, got {}", x.str());
  check_shape(c, "Transition", Shape{tags < 0 ? kUnknown : tags + 2, tags});
  AB_CHECK(w[0] < 0 || w[1] < 0 || w[0] == w[1] + 2, ShapeMismatch,
           "Transition must have two more rows than columns, for the first and the last tag, got {}", w.str());
  if (dense) check_lengths(c, "Length", x[0]);
  if (!c.has_in("Label")) return;
  check_ids_dtype(c, "Label");
  const Shape& label = c.in("Label").shape;
  const int lead = x.rank() - 1;
  bool fits = label.rank() >= lead;
  for (int d = 0; fits && d < label.rank(); ++d) fits = compatible({label[d]}, {d < lead ? x[d] : 1});
  AB_CHECK(fits, ShapeMismatch, "Label must have a tag for each row of Emission {}, got {}", x.str(), label.str());
}

// The sequences at run time, and the lengths of a batch.
inline Spans crf_spans(const KernelContext& c, In emission, In length, const Offsets* lod, Tensor* scratch) {
  if (!length) return Spans(*lod);
  const Shape& x = c[emission].shape();
  return {"Length", as_int64(c[length], scratch), x[0], x[1]};
}

// Rejects tags out of range. Checks only the rows of sequences: padding of a batch is ignored.
inline void check_tags(const Spans& spans, const int64_t* labels, int64_t tags) {
  for (int64_t s = 0; s < spans.count(); ++s) check_ids("Label", labels + spans.begin(s), spans.rows(s), tags);
}

}  // namespace anabranch::sequence
