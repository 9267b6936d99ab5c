// Updates of the records [row | moments] of growable tables in the widest vectors of the machine. No threads in here.
#pragma once
#include <cstdint>

namespace anabranch::sparse {

enum class RecordRule : int32_t { kSgd = 0, kAdagrad = 1, kAdam = 2 };  // the numbers: moments of a record

// A record and its gradients in a batch.
struct RecordGroup {
  float* record;
  uint32_t* seen_at;    // where its age stands, which is taken while gradients are collected
  uint32_t seen;        // the age
  int32_t first, last;  // places of its gradients
};

struct RecordUpdate {
  RecordRule rule = RecordRule::kSgd;
  float rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  const RecordGroup* groups = nullptr;  // `count`
  const int32_t* next = nullptr;        // of each gradient: the place of the next one of its record, -1: none
  const float* grads = nullptr;         // place p at grads + p * width
  int64_t count = 0, width = 0;
  bool makes_rows = false;  // for keys without one
};
// By the formulae of the ops sgd, adagrad and adam; the gradients of a record are added up in order.
void update_records(const RecordUpdate& u);

}  // namespace anabranch::sparse
