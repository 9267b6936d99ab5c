// The contents of a data set's lines: named slots in the order of the text, and settings for splitting lines into them.
// Plain values; nothing here reads a file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace anabranch::data {

// One feature of a sample. A dense slot has a fixed number of values per sample, given by its shape, and becomes a
// tensor [rows, shape...]; a sparse one has one or more and becomes a tensor [values, 1] with one level of LoD.
struct Slot {
  std::string name;
  DType dtype = DType::kInt64;  // kInt64 or kFloat32
  bool dense = false;
  Shape shape{1};    // dense: of one sample; one extent may be kUnknown and follows from the first sample of a batch
  bool used = true;  // false: parsed, checked and dropped

  bool is_float() const { return dtype == DType::kFloat32; }
  int64_t values() const { return dense ? shape.numel() : kUnknown; }  // of one sample, or kUnknown
};

struct Schema {
  std::vector<Slot> slots;
  bool ins_id = false;   // a line starts with "1 <instance id>"
  bool content = false;  // followed by "1 <text>"
  // A dense slot of known size may have another number of values in a line: those of a batch are joined and divided
  // into rows of its shape, and what remains is dropped, as in Fluid 1.8.5. false: such a line is a bad row.
  bool joins = false;
  bool drop_zeros = false;  // sparse slots: zeros (also floats below 1e-6) are dropped; an empty list gets one zero

  // InvalidArgument: no used slot, two slots of one name, another dtype, more than one unknown extent.
  void check() const;
  std::vector<const Slot*> used() const;  // in order: the columns of a Batch
};

}  // namespace anabranch::data
