// Lookup and sum over each sequence in one op.
#include <algorithm>
#include <memory>

#include "core/row_locks.h"
#include "opdef/device_rows.h"
#include "ops/declare/declare.h"
#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"
#include "ops/sparse/queued_lookups.h"
#include "ops/sparse/queued_rows.h"

namespace anabranch::sparse::fused_embedding_seq_pool_op {
namespace {

int64_t check_lookup(const InferContext& c) {
  check_rank(c, "W", 2, 2);
  check_ids_dtype(c, "Ids");
  check_rank(c, "Ids", 2, 2);
  check_shape(c, "Ids", Shape{kUnknown, 1});
  return c.runtime() ? sequence::count(sequence::lod_of(c, "Ids").back()) : kUnknown;
}

// Calls fn(sequence, id) for the ids except padding.
template <class Fn> void each_id(const Tensor& ids, const int64_t* id, int64_t padding, Fn&& fn) {
  const auto& o = ids.lod().back();
  for (size_t s = 1; s < o.size(); ++s) {
    for (int64_t t = o[s - 1]; t < o[s]; ++t) {
      if (id[t] != padding) fn(static_cast<int64_t>(s) - 1, id[t]);
    }
  }
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [padding = op.attr<int64_t>("padding_idx"), w = op.in("W"), ids = op.in("Ids"), out = op.out("Out"),
          source = IdSource::of(op.op()), scratch = std::make_shared<Tensor>()](KernelContext& c) {
    const int64_t* id = as_int64(c[ids], scratch.get());
    check_table_ids(source, c[ids], id, c[w].rows(), padding);
    const int64_t width = c[w].row_elems();
    const T* table = c[w].data<T>();
    T* to = c[out].mutable_data<T>();
    std::fill(to, to + c[out].numel(), T{0});
    each_id(c[ids], id, padding, [=, shared = RowLocks::shared()](int64_t sequence, int64_t row) {
      const RowLocks::Hold hold(table, row, shared);
      for (int64_t k = 0; k < width; ++k) to[sequence * width + k] += table[row * width + k];
    });
  };
};

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [padding = op.attr<int64_t>("padding_idx"), sparse = op.attr<bool>("is_sparse"), w = op.in("W"),
          ids = op.in("Ids"), dout = op.in("Out@GRAD"), dw = op.out("W@GRAD"), source = IdSource::of(op.op()),
          scratch = std::make_shared<Tensor>()](KernelContext& c) {
    if (!c.needs(dw)) return;
    const int64_t* id = as_int64(c[ids], scratch.get());
    check_table_ids(source, c[ids], id, c[w].rows(), padding);
    const int64_t width = c[w].row_elems();
    const T* g = c[dout].data<T>();
    if (!sparse) {
      T* to = c[dw].mutable_data<T>();
      std::fill(to, to + c[dw].numel(), T{0});
      each_id(c[ids], id, padding, [=](int64_t sequence, int64_t row) {
        for (int64_t k = 0; k < width; ++k) to[row * width + k] += g[sequence * width + k];
      });
      return;
    }
    auto& rows = c.value(dw).template as<SelectedRows>();
    const int64_t kept = c[ids].numel() - (padding < 0 ? 0 : std::count(id, id + c[ids].numel(), padding));
    rows.height = c[w].rows();
    rows.rows.clear();
    rows.rows.reserve(static_cast<size_t>(kept));
    rows.value.resize(Shape{kept, width}, dtype_of<T>);
    T* to = rows.value.mutable_data<T>();
    each_id(c[ids], id, padding, [&](int64_t sequence, int64_t row) {
      to = std::copy(g + sequence * width, g + (sequence + 1) * width, to);
      rows.rows.push_back(row);
    });
  };
};

AB_OP(fused_embedding_seq_pool)
    .doc("Out[s] = the sum of the rows of W for the ids of sequence s; zeros for an empty sequence.")
    .in("W", "[height, width] float")
    .in("Ids", "[rows, 1] int32 or int64 in [0, height) with LoD")
    .out("Out", "[sequences, width]")
    .attr<std::string>("combiner", "sum", "sum",
                       [](const std::string& v) {
                         AB_CHECK(v == "sum", Unsupported, "combiner must be sum, got {}", v);
                       })
    .attr<int64_t>("padding_idx", -1, "id that is skipped and gets no gradient; -1: none")
    .attr<bool>("is_sparse", false, "the gradient of W holds only the touched rows")
    .ignores("grad_inplace", false)
    .traits(kLooksUp)
    .infer([](InferContext& c) {
      const int64_t sequences = check_lookup(c);
      c.set_out("Out", Shape{sequences, c.in("W").shape[1]}, c.in("W").dtype);
    })
    .grad_reads({"W", "Ids"})
    .grad_to({"W"})
    .with(reports_ids)
    .cpu<float, double>(forward)
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return queued_pooling<T>(op); });

AB_GRAD(fused_embedding_seq_pool)
    .doc("W@GRAD = the sums of Out@GRAD over the ids of each row, dense or as SELECTED_ROWS.")
    .infer([](InferContext& c) {
      infer_gradient(c);
      if (c.attr<bool>("is_sparse")) c.out("W@GRAD").kind = VarKind::kSelectedRows;
    })
    .with(rows_on_devices)
    .cpu<float, double>(backward)
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return queued_pooling_grad<T>(op); });

}  // namespace
}  // namespace anabranch::sparse::fused_embedding_seq_pool_op
