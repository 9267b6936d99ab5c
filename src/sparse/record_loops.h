// Updates of the records [row | moments] of growable tables with the widest vectors of the machine. Single-threaded.
#pragma once
#include <cstdint>
#include <string>

#include "sparse/table_options.h"

namespace anabranch::sparse {

RowRule row_rule(const std::string& name);  // InvalidArgument unless it is one of rules::kRowRules

// A record and its gradients in a batch.
struct RecordGroup {
  float* record;
  uint32_t* seen_at;    // location of its age, which is overwritten while gradients are collected
  uint32_t seen;        // the age
  int32_t first, last;  // positions of its gradients
};

struct RecordUpdate : rules::RowStep<float> {
  float mu = 0;                         // of momentum
  bool nesterov = false;                // likewise
  float l1 = 0, l2 = 0, power = -0.5f;  // of ftrl
  // Regularization of the rows that are updated: w = w - shrink * w, then g = g + l2_decay * w + l1_decay * sign(w).
  float shrink = 0, l2_decay = 0, l1_decay = 0;

  // fn(rule), except for the rule with one moment for a whole row.
  template <class Fn> void with_rule(const Fn& fn) const {
    if (rule <= RowRule::kAdam) return RowStep::with_rule(fn);
    if (rule == RowRule::kFtrl) return fn(rules::Ftrl<float>{l1, l2, power, rate});
    if (nesterov) return fn(rules::Nesterov<float>{mu, rate});
    fn(rules::Momentum<float>{mu, rate});
  }
  bool decays() const { return shrink != 0 || l2_decay != 0 || l1_decay != 0; }

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
