// Shared by fused_attention and its gradient: tensor layouts, tasks, scratch space.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "opdef/infer_context.h"
#include "opdef/kernel_context.h"

namespace anabranch::nn {

// A tensor as matrices [rows, cols], one per head of each sample. `last`: [samples, rows, heads, cols], as products
// produce it; else [..., rows, cols].
struct HeadMatrices {
  int64_t samples = 1, heads = 1, rows, cols;
  bool last;

  HeadMatrices(const Shape& s, bool heads_last) : last(heads_last) {
    const int r = s.rank();
    cols = s[r - 1];
    rows = s[last ? 1 : r - 2];
    heads = last ? s[2] : 1;
    samples = last ? s[0] : s.numel(0, r - 2);
  }
  int64_t count() const { return samples * heads; }
  int64_t stride() const { return last ? heads * cols : cols; }  // from row to row
  int64_t at(int64_t matrix) const {
    return last ? matrix / heads * rows * heads * cols + matrix % heads * cols : matrix * rows * cols;
  }
};

// The shape of a tensor with heads before rows.
inline Shape heads_first(const Shape& s, bool last) { return last ? Shape{s[0], s[2], s[1], s[3]} : s; }

// Tasks that may run concurrently; each computes its units one after another.
struct TaskSplit {
  int64_t per_task, tasks;
  explicit TaskSplit(int64_t units)
      : per_task(std::max<int64_t>(1, (units + 63) / 64)), tasks((units + per_task - 1) / per_task) {}
  template <class Fn> void each(const KernelContext& c, int64_t units, Fn&& fn) const {
    c.parallel_each(tasks, 1, [&](int64_t task) {
      for (int64_t u = task * per_task; u < std::min(units, (task + 1) * per_task); ++u) fn(task, u);
    });
  }
};

// Scratch memory of the thread for `n` numbers, kept for its next task; `which` distinguishes the two buffers that a
// task may need.
float* attention_room(int which, int64_t n);

Kernel attention_forward(const KernelArgs& op);
Kernel attention_backward(const KernelArgs& op);

}  // namespace anabranch::nn
