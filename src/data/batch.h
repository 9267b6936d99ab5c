// A batch to feed to a program: one tensor for each used slot. BatchStream::next fills the same Batch repeatedly: its
// memory grows to the largest batch and stays. A tensor kept beyond the next call shares memory that will change: copy
// it. Not thread-safe; each consumer has a separate one.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace anabranch::data {

struct BatchScratch;

struct Batch {
  std::vector<Tensor> columns;                 // column i is slot Schema::used()[i]
  int64_t rows = 0;                            // samples
  int64_t index = 0;                           // number in the order of this pass, from 0
  std::vector<std::string> ins_ids, contents;  // one per sample, if the schema has them

  Batch() = default;
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;

 private:
  friend class RowGather;
  std::shared_ptr<BatchScratch> scratch_;  // memory of the last call
};

}  // namespace anabranch::data
