// Updates of the records [row | moments] of growable tables with the widest vectors of the machine. Single-threaded.
#pragma once
#include <cstdint>
#include <string>

#include "sparse/update_rules.h"

namespace anabranch::sparse {

using rules::RowRule;
RowRule row_rule(const std::string& name);  // InvalidArgument unless it is sgd, adagrad or adam

// A record and its gradients in a batch.
struct RecordGroup {
  float* record;
  uint32_t* seen_at;    // location of its age, which is overwritten while gradients are collected
  uint32_t seen;        // the age
  int32_t first, last;  // positions of its gradients
};

struct RecordUpdate : rules::RowStep<float> {
  const RecordGroup* groups = nullptr;  // `count`
  const int32_t* next = nullptr;        // for each gradient the position of the next one of its record, -1: none
  const float* grads = nullptr;         // position p at grads + p * width
  int64_t count = 0, width = 0;
  int64_t added = 0;        // first numbers of a row to which the gradients are added
  bool makes_rows = false;  // for keys without a row; others count as seen now
  uint32_t time = 0;        // of its events, if the table's rows expire by time; 0: unknown
};
// The gradients of a record are summed in order.
void update_records(const RecordUpdate& u);

}  // namespace anabranch::sparse
