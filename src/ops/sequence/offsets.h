// Accesses the sequences of a tensor: the offsets of the innermost LoD level, and LoDs made from lengths.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "opdef/op_def.h"
#include "ops/declare/checks.h"

namespace anabranch::sequence {

using Offsets = std::vector<int64_t>;

// The LoD of an input; InvalidArgument if it has none. Only at run time.
inline const LoD& lod_of(const InferContext& c, std::string_view slot, int i = 0) {
  const Meta& m = c.in(slot, i);
  AB_CHECK(m.lod && !m.lod->empty(), InvalidArgument, "{} must have LoD, got none; feed it as a LoDTensor", slot);
  AB_CHECK(m.shape.rank() > 0 && m.lod->back().back() == m.shape[0], InvalidArgument,
           "the LoD of {} must end at its last row, got row {} of {}", slot, m.lod->back().back(), m.shape.str());
  return *m.lod;
}

inline const Offsets& offsets(const Tensor& t) {
  AB_CHECK(!t.lod().empty(), InvalidArgument, "the tensor {} must have LoD, got none", t.shape().str());
  return t.lod().back();
}

inline int64_t count(const Offsets& o) { return static_cast<int64_t>(o.size()) - 1; }

inline LoDRef one_level(Offsets o) { return std::make_shared<const LoD>(LoD{std::move(o)}); }

// The LoD with its innermost level replaced.
inline LoDRef with_last(const LoD& lod, Offsets last) {
  LoD changed = lod;
  changed.back() = std::move(last);
  return std::make_shared<const LoD>(std::move(changed));
}

// The input's shape with another number of rows; unknown while the program is built.
inline void out_rows(InferContext& c, std::string_view out, std::string_view in, int64_t rows) {
  Shape shape = c.in(in).shape;
  AB_CHECK(shape.rank() > 0, InvalidArgument, "{} must have at least one axis, got a scalar", in);
  shape.set(0, rows);
  c.set_out(out, shape, c.in(in).dtype);
}

inline void set_lod(InferContext& c, std::string_view out, LoDRef lod) {
  c.out(out).lod_level = lod ? static_cast<int>(lod->size()) : 0;
  c.out(out).lod = std::move(lod);
}

// Out has the columns of X and new sequences in one LoD level; their lengths are known at run time.
inline void open_sequences(InferContext& c) {
  out_rows(c, "Out", "X", kUnknown);
  c.out("Out").lod_level = std::max(1, c.in("X").lod_level);
}

inline void set_sequences(InferContext& c, Offsets made) {
  out_rows(c, "Out", "X", made.back());
  set_lod(c, "Out", one_level(std::move(made)));
}

}  // namespace anabranch::sequence
