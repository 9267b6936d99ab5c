// Arguments of device kernels for many lookups: where rows are gathered from, and the gradients that form sparse rows.
#pragma once
#include <string>
#include <vector>

#include "opdef/fused_ops.h"
#include "ops/device/args_sparse.h"
#include "ops/device/launch_rows.h"
#include "ops/device/upload.h"

namespace anabranch::sparse {

using fused::Pool;

inline constexpr int64_t kNoPadding = -1;

// For .with(): how kernels report invalid ids.
void reports_ids(OpDef& def);

inline device::SequencePooling pooling_of(Pool pool) {
  return pool == Pool::kAverage ? device::kPoolAverage : pool == Pool::kSqrt ? device::kPoolSqrt : device::kPoolSum;
}

inline int32_t id_flags(const Tensor& ids, int64_t padding) {
  return (ids.dtype() == DType::kInt32 ? device::kIdsOf32 : 0) | (padding == kNoPadding ? 0 : device::kSkipsPadding);
}

// One lookup: the gradients of its ids are in the rows of a tensor, per_row of them from a column on; for a pooled one,
// a row per sequence.
struct QueuedSource {
  const Tensor *ids = nullptr, *grads = nullptr;
  int64_t padding = kNoPadding, column = 0, per_row = 1;
  Pool pool = Pool::kNone;
};

template <class T> class QueuedRows {
 public:
  // The rows of all sources, source after source, -1 for padding: one per id.
  void make(const DeviceContext& c, const std::vector<QueuedSource>& sources, int64_t height, int64_t width,
            SelectedRows* out);

 private:
  void launch(const DeviceContext& c, device::SourceRowsArgs& a, int64_t first, SelectedRows* out) const;

  ab_kernel kernel_ = device::kernel_of<T>("source_rows");
  std::vector<device::Upload> offsets_;
};

}  // namespace anabranch::sparse
