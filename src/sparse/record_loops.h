// Updates of the records [row | moments] of growable tables with the widest vectors of the machine. Single-threaded.
#pragma once
#include <cstdint>

namespace anabranch::sparse {

enum class RecordRule : int32_t { kSgd = 0, kAdagrad = 1, kAdam = 2 };  // the values: moments per record

// A record and its gradients in a batch.
struct RecordGroup {
  float* record;
  uint32_t* seen_at;    // location of its age, which is overwritten while gradients are collected
  uint32_t seen;        // the age
  int32_t first, last;  // positions of its gradients
};

struct RecordUpdate {
  RecordRule rule = RecordRule::kSgd;
  float rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  const RecordGroup* groups = nullptr;  // `count`
  const int32_t* next = nullptr;        // for each gradient the position of the next one of its record, -1: none
  const float* grads = nullptr;         // position p at grads + p * width
  int64_t count = 0, width = 0;
  bool makes_rows = false;  // for keys without a row; others count as seen now
};
// The formulae of the ops sgd, adagrad and adam; the gradients of a record are summed in order.
void update_records(const RecordUpdate& u);

}  // namespace anabranch::sparse
