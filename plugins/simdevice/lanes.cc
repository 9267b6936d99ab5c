#include "lanes.h"

#include <cstring>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "failure.h"
#include "fiber.h"

namespace anabranch::simdevice {
namespace {

using device::HostLanes;
using device::HostRun;
using device::LaneCall;
using device::Shuffle;

constexpr size_t kStackBytes = size_t{1} << 17;

// splitmix64
uint64_t next_number(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::string text(const LaneCall* call) {
  if (!call) return "has ended";
  const char *path = call->at.file_name(), *name = strrchr(path, '/');
  return said("calls ", call->what, " (", name ? name + 1 : path, ":", call->at.line(), ")");
}

bool agree(const LaneCall* a, const LaneCall* b) {
  if (!a || !b) return a == b;
  return a->together == b->together && a->at.line() == b->at.line() && a->at.column() == b->at.column() &&
         strcmp(a->at.file_name(), b->at.file_name()) == 0;
}

struct Rows {  // the rows of a launch
  int64_t lanes;
  const void* body;
  HostRun::Row row;
  const std::string& kernel;
};

class RowLanes final : public device::LaneGroup {
 public:
  RowLanes() : lanes_(256), values_(256) {}

  // writes: null, or the recorder to which each finished lane is reported.
  void run(const Rows& rows, int64_t row, uint64_t* seed, Writes* writes) {
    rows_ = &rows, row_ = row;
    const int64_t count = rows.lanes;
    for (int64_t i = 0; i < count; ++i) begin(i);
    for (int64_t phase = 0;; ++phase) {
      const Shuffle order(count, next_number(seed));
      for (int64_t k = 0, i = order.first(); k < count; ++k, i = order.after(i)) go_on(i, phase, writes);
      for (int64_t i = 1; i < count; ++i) {
        if (!agree(lane(i).call, lane(0).call)) disagree(i);
      }
      if (!lane(0).call) return;
      for (int64_t i = 0; i < count; ++i) values_[static_cast<size_t>(i)] = lane(i).call->value;
      lane(0).call->together(values_.data(), count);
    }
  }

  void meet(int64_t index, const LaneCall& call) override {
    Lane& own = lane(index);
    own.call = &call;
    own.fiber->pause();
  }

 private:
  struct Lane {
    std::unique_ptr<Fiber> fiber;  // created when a row first has this number of lanes
    RowLanes* group = nullptr;
    int64_t index = 0;
    const LaneCall* call = nullptr;  // where it waits; null: nowhere
    bool within = false;             // a body
    std::exception_ptr thrown;
  };

  Lane& lane(int64_t i) { return lanes_[static_cast<size_t>(i)]; }

  void begin(int64_t i) {
    Lane& own = lane(i);
    if (!own.fiber) own.fiber = std::make_unique<Fiber>(kStackBytes);
    if (own.within) own.fiber->give_up();  // the last row has failed
    own.group = this;
    own.index = i;
    own.call = nullptr;
    own.within = true;
    own.thrown = nullptr;
    own.fiber->begin(
        [](void* arg) {
          Lane& self = *static_cast<Lane*>(arg);
          try {
            const Rows& rows = *self.group->rows_;
            rows.row(rows.body, HostLanes(self.group, self.index, rows.lanes), self.group->row_);
          } catch (...) {
            self.thrown = std::current_exception();
          }
          self.call = nullptr;
          self.within = false;
        },
        &own);
  }

  void go_on(int64_t i, int64_t phase, Writes* writes) {
    lane(i).fiber->go_on();
    if (lane(i).thrown) std::rethrow_exception(lane(i).thrown);
    if (writes) writes->note({row_, i, phase});
  }

  [[noreturn]] void disagree(int64_t i) {
    fail(AB_FAULT, "lanes of ", rows_->kernel, " disagree in row ", row_, ": lane ", i, " ", text(lane(i).call),
         ", lane 0 ", text(lane(0).call));
  }

  std::vector<Lane> lanes_;
  std::vector<void*> values_;
  int64_t row_ = 0;
  const Rows* rows_ = nullptr;
};

}  // namespace

Shuffle ManyLanes::order(int64_t n) { return {n, next_number(&seed_)}; }

void ManyLanes::rows(int64_t n, int64_t lanes, const void* body, Row row) {
  thread_local RowLanes group;
  const Rows rows{lanes, body, row, kernel_};
  const Shuffle all = order(n);
  Writes* const writes = writes_.begin(n * lanes) ? &writes_ : nullptr;
  for (int64_t k = 0, i = all.first(); k < n; ++k, i = all.after(i)) group.run(rows, i, &seed_, writes);
}

}  // namespace anabranch::simdevice
