// Packed samples to the tensors of a batch.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch.h"
#include "data/block.h"

namespace anabranch::data {

struct RowAt {
  const Block* block;
  int64_t row;
};

struct BatchScratch {
  std::vector<RowAt> rows;                           // rows for the next gather()
  std::vector<std::shared_ptr<const Block>> blocks;  // keeps them alive
  std::vector<const uint32_t*> at;                   // where the next slot of each sample starts
  std::vector<std::shared_ptr<LoD>> lods;            // one per column; written in place unless shared
};

// Constant, so any number of consumers may use it concurrently.
class RowGather {
 public:
  explicit RowGather(const Schema& schema);  // the schema must outlive it

  // The scratch of a batch, without rows. The code that fills `blocks` empties it again.
  static BatchScratch& scratch(Batch* batch);
  // Fills the columns of *batch from its scratch's rows. InvalidArgument if samples differ in a dense slot with an
  // unknown extent.
  void gather(Batch* batch) const;

 private:
  struct Column {
    RecordShape::Part part;
    const Slot* slot;
  };

  const uint32_t* adjacent(const BatchScratch& scratch) const;
  void join_uneven(const BatchScratch& scratch, Batch* batch) const;
  void join_column(const BatchScratch& scratch, size_t slot, Tensor* to) const;

  const Schema& schema_;
  RecordShape shape_;
  std::vector<Column> columns_;
  size_t words_ = 0;  // of each sample, if all have the same number; 0: they have not
};

}  // namespace anabranch::data
