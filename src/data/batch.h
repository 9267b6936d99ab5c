// A batch as a program is fed with it: one tensor for each used slot. A Batch is filled again and again by
// BatchStream::next: its memory grows to the largest batch and stays. Whoever keeps a tensor of it beyond the next call
// shares memory that will change: copy it. Not thread-safe; each consumer has one of its own.
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
  int64_t index = 0;                           // place in the order of this pass, from 0
  std::vector<std::string> ins_ids, contents;  // one a sample, where the schema has them

  Batch() = default;
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;

 private:
  friend class RowGather;
  std::shared_ptr<BatchScratch> scratch_;  // memory of the last call
};

}  // namespace anabranch::data
