// Table lookup by id, in two forms that differ in the shape of Ids: [..., 1] (lookup_table) and [...] (_v2).
#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "base/flags.h"
#include "core/row_locks.h"
#include "opdef/device_rows.h"
#include "opdef/op_def.h"
#include "ops/device/zeros.h"
#include "ops/kernels/ids.h"
#include "ops/sparse/look_up.h"
#include "ops/sparse/queued_rows.h"
#include "ops/sparse/row_loops.h"
#include "ops/sparse/row_places.h"

namespace anabranch::sparse::lookup_table_op {
namespace {

constexpr int64_t kGrainElems = 16384;

// ---- shapes

void infer_lookup(InferContext& c, bool last_is_one) {
  const Meta& w = c.in("W");
  check_rank(c, "W", 2, 2);
  c.set_out("Out", looked_up_shape(c, last_is_one, w.shape[1]), w.dtype);
  c.share_lod("Out", "Ids");
}

void infer_lookup_grad(InferContext& c) {
  check_rank(c, "W", 2, 2);
  const Shape &ids = c.in("Ids").shape, &dout = c.in("Out@GRAD").shape;
  const int64_t width = c.in("W").shape[1], n = ids.numel(), have = dout.numel();
  AB_CHECK(n < 0 || have < 0 || width < 0 || n * width == have, ShapeMismatch,
           "Out@GRAD must have one row of W {} per element of Ids {}, got {}", c.in("W").shape.str(), ids.str(),
           dout.str());
  if (!c.has_out("W@GRAD")) return;
  c.same_shape("W@GRAD", "W");
  c.out("W@GRAD").kind = c.attr<bool>("is_sparse") ? VarKind::kSelectedRows : VarKind::kLoDTensor;
}

// ---- kernels

struct Sizes {
  int64_t n, height, width;
};

// Rows of one element: a single load each, without locks, because one element is never torn.
template <class T>
void gather_elements(KernelContext& c, int64_t n, const T* table, const int64_t* ids, int64_t padding, T* out) {
  c.parallel_each(n, kGrainElems, [=](int64_t i) {
    out[i] =
        ids[i] == padding ? T{0} : std::atomic_ref<T>(const_cast<T&>(table[ids[i]])).load(std::memory_order_relaxed);
  });
}

template <class T> void gather_rows(KernelContext& c, int64_t n, const GatherPart<T>& part, T* out) {
  c.parallel_for(n, std::max<int64_t>(1, kGrainElems / std::max<int64_t>(1, part.width)),
                 [=](int64_t begin, int64_t end) { gather_parts(&part, 1, begin, end, out, part.width); });
}

// The table holds only some of its rows. A repeated row has its first values, as in Fluid 1.8.5.
template <class T>
void copy_existing(const SelectedRows& table, RowPlaces* places, const int64_t* ids, int64_t n, int64_t padding,
                   Tensor* out) {
  check_rows(table);
  places->see(table.rows);
  const int64_t width = table.value.row_elems();
  AB_CHECK(out->numel() == n * width, ShapeMismatch, "W must have {} columns, got {}",
           out->numel() / std::max<int64_t>(1, n), table.value.shape().str());
  T* to = out->mutable_data<T>();
  for (int64_t i = 0; i < n; ++i, to += width) {
    const int64_t at = places->of(ids[i]);
    AB_CHECK(at >= 0 || ids[i] == padding, InvalidArgument, "Ids must name existing rows of W, got {}", ids[i]);
    if (ids[i] == padding) {
      std::fill_n(to, width, T{0});
    } else {
      std::copy_n(table.value.data<T>() + at * width, width, to);
    }
  }
}

constexpr auto lookup_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In w = op.in("W"), ids = op.in("Ids");
  const Out out = op.out("Out");
  const int64_t padding = op.attr<int64_t>("padding_idx");
  const IdSource source = IdSource::of(op.op());
  const auto scratch = std::make_shared<Tensor>();
  const auto zeros = std::make_shared<std::vector<T>>();
  const auto places = std::make_shared<RowPlaces>(Repeated::kFirst);
  return [=](KernelContext& c) {
    if (const auto* rows = c.value(w).template get<SelectedRows>()) {
      return copy_existing<T>(*rows, places.get(), as_int64(c[ids], scratch.get()), c[ids].numel(), padding, &c[out]);
    }
    const Sizes s{c[ids].numel(), c[w].shape()[0], c[w].shape()[1]};
    const int64_t* id = as_int64(c[ids], scratch.get());
    check_table_ids(source, c[ids], id, s.height, padding);
    const T* table = c[w].data<T>();
    T* to = c[out].mutable_data<T>();
    if (s.width == 1) return gather_elements(c, s.n, table, id, padding, to);
    zeros->resize(static_cast<size_t>(s.width));
    GatherPart<T> part;
    part.table = table;
    part.width = s.width;
    part.ids = id;
    part.padding = padding;
    part.zeros = zeros->data();
    part.shared = RowLocks::shared();
    gather_rows(c, s.n, part, to);
  };
};

// Rows of 8-bit levels, which no thread changes: quantized models look them up and dequantize the result.
constexpr auto lookup_levels_kernel = [](TypeTag<int8_t>, const KernelArgs& op) -> Kernel {
  return [w = op.in("W"), ids = op.in("Ids"), out = op.out("Out"), padding = op.attr<int64_t>("padding_idx"),
          source = IdSource::of(op.op()), scratch = std::make_shared<Tensor>(),
          places = std::make_shared<RowPlaces>(Repeated::kFirst)](KernelContext& c) {
    const int64_t* id = as_int64(c[ids], scratch.get());
    if (const auto* rows = c.value(w).get<SelectedRows>()) {
      return copy_existing<int8_t>(*rows, places.get(), id, c[ids].numel(), padding, &c[out]);
    }
    const int64_t width = c[w].shape()[1];
    check_table_ids(source, c[ids], id, c[w].shape()[0], padding);
    const auto* table = c[w].data<int8_t>();
    auto* to = c[out].mutable_data<int8_t>();
    c.parallel_each(c[ids].numel(), std::max<int64_t>(1, kGrainElems / std::max<int64_t>(1, width)), [=](int64_t i) {
      if (id[i] == padding) {
        std::fill_n(to + i * width, width, int8_t{0});
      } else {
        std::copy_n(table + id[i] * width, width, to + i * width);
      }
    });
  };
};

// Each task owns a range of table rows and visits all ids, so the gradients of one id are added in order of samples.
template <class T>
void scatter_add(KernelContext& c, const Sizes& s, const T* dout, const int64_t* ids, int64_t padding, T* dtable) {
  const int64_t grain = std::max<int64_t>((s.height + 7) / 8, kGrainElems / std::max<int64_t>(1, s.width));
  c.parallel_for(s.height, grain, [=](int64_t begin, int64_t end) {
    std::fill(dtable + begin * s.width, dtable + end * s.width, T{0});
    for (int64_t i = 0; i < s.n; ++i) {
      if (ids[i] < begin || ids[i] >= end || ids[i] == padding) continue;
      T* to = dtable + ids[i] * s.width;
      const T* from = dout + i * s.width;
      for (int64_t j = 0; j < s.width; ++j) to[j] += from[j];
    }
  });
}

// In Fluid 1.8.5 the row of padding_idx gets a sparse gradient, although it is documented to get none.
bool keeps_padding_rows() { return Flags::exact_fluid(); }

constexpr auto lookup_grad_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In w = op.in("W"), ids = op.in("Ids"), dout = op.in("Out@GRAD");
  const Out dw = op.out("W@GRAD");
  const int64_t padding = op.attr<int64_t>("padding_idx");
  const bool sparse = op.attr<bool>("is_sparse");
  const bool skips = padding != kNoPadding && !keeps_padding_rows();
  const IdSource source = IdSource::of(op.op());
  const auto scratch = std::make_shared<Tensor>();
  return [=](KernelContext& c) {
    if (!c.needs(dw)) return;
    const Sizes s{c[ids].numel(), c[w].shape()[0], c[w].shape()[1]};
    const int64_t* id = as_int64(c[ids], scratch.get());
    check_table_ids(source, c[ids], id, s.height, padding);
    const T* g = c[dout].data<T>();
    if (sparse) {
      auto& rows = c.value(dw).template as<SelectedRows>();
      rows.height = s.height;
      take_rows(id, s.n, skips || padding >= s.height ? &padding : nullptr, g, s.width, &rows);
    } else {
      scatter_add(c, s, g, id, padding, c[dw].mutable_data<T>());
    }
  };
};

// ---- device kernels, which report ids outside of the table and read zeros there

constexpr auto queued_lookup = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::KernelOfIds(device::stem_of_size("gather", sizeof(T))), w = op.in("W"), ids = op.in("Ids"),
          out = op.out("Out"), padding = op.attr<int64_t>("padding_idx")](const DeviceContext& c) {
    device::IndexArgs a{};
    a.x = device::operand(c[w]);
    a.ids = device::operand(c[ids]);
    a.y = device::operand(c[out]);
    a.ids_count = c[ids].numel();
    a.height = c[w].shape()[0];
    a.width = c[w].shape()[1];
    a.padding = padding;
    a.flags = (padding == kNoPadding ? 0 : device::kHasPadding) | device::kReportsIds;
    a.fault = device::fault_of(c);
    c.launch(kernel.of(c[ids]), a);
  };
};

template <class T> Kernel queued_row_grad(const KernelArgs& op) {
  const int64_t padding = keeps_padding_rows() ? kNoPadding : op.attr<int64_t>("padding_idx");
  return [w = op.in("W"), ids = op.in("Ids"), dout = op.in("Out@GRAD"), dw = op.out("W@GRAD"),
          sources = std::vector<QueuedSource>{{.padding = padding}},
          rows = QueuedRows<T>()](const DeviceContext& c) mutable {
    if (!c.needs(dw)) return;
    sources[0].ids = &c[ids];
    sources[0].grads = &c[dout];
    rows.make(c, sources, c[w].shape()[0], c[w].shape()[1], &c.value(dw).template as<SelectedRows>());
  };
}

constexpr auto queued_lookup_grad = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  if (op.attr<bool>("is_sparse")) return queued_row_grad<T>(op);
  return [kernel = device::kernel_of<T>("scatter"), groups = device::GroupedIds(), ids = op.in("Ids"),
          dout = op.in("Out@GRAD"), dw = op.out("W@GRAD"),
          padding = op.attr<int64_t>("padding_idx")](const DeviceContext& c) mutable {
    if (!c.needs(dw)) return;
    device::fill_zero(c, c[dw]);
    device::ScatterArgs a{};
    a.x = device::operand(c[dout]);
    a.y = device::operand(c[dw]);
    a.groups = groups.of(c, c[ids], c[dw].shape()[0]);
    a.n = c[ids].numel();
    a.width = c[dw].shape()[1];
    a.skipped = padding;
    a.mode = device::kScatterSum;
    c.launch(kernel, a);
  };
};

// ---- declarations

void attrs(OpDef& def) {
  def.attr<bool>("is_sparse", false, "the gradient of W holds only the touched rows")
      .attr<bool>("is_distributed", false, "the table is on parameter servers")
      .attr<int64_t>("padding_idx", kNoPadding, "id that reads as zero and gets no gradient; -1: none")
      .attr<bool>("remote_prefetch", false, "fetches rows from parameter servers")
      .attr<int32_t>("trainer_id", 0, "id of this worker")
      .attr<std::vector<int64_t>>("height_sections", {}, "number of rows of the table on each server")
      .attr<std::vector<std::string>>("epmap", {}, "addresses of the servers")
      .attr<std::vector<std::string>>("table_names", {}, "names of the shards of the table");
}

void look_up(OpDef& def, bool last_is_one) {
  def.in("W", last_is_one ? "[height, width] float, or int8 without a gradient" : "[height, width] float")
      .in("Ids", last_is_one ? "[..., 1] int32 or int64 in [0, height)" : "[...] int32 or int64 in [0, height)")
      .takes("W", Holds::kTensorOrRows)
      .out("Out", last_is_one ? "[..., width]; with the LoD of Ids" : "[..., width]")
      .with(attrs)
      .traits(kLooksUp)
      .infer([=](InferContext& c) { infer_lookup(c, last_is_one); })
      .grad_reads({"W", "Ids"})
      .grad_to({"W"})
      .with(reports_ids)
      .cpu<float, double>(lookup_kernel)
      .device<float, double>(queued_lookup);
}

void gradient(OpDef& def) {
  def.doc("W@GRAD = the sums of Out@GRAD over the samples of each id, dense or as SELECTED_ROWS.")
      .infer(infer_lookup_grad)
      .with(rows_on_devices)
      .cpu<float, double>(lookup_grad_kernel)
      .device<float, double>(queued_lookup_grad);
}

AB_OP(lookup_table)
    .doc(
        "Out[i, :] = W[Ids[i], :]; rows of padding_idx read as zero. The last extent of Ids, 1, is replaced by the "
        "width of the table.")
    .with([](OpDef& def) { look_up(def, true); })
    .cpu<int8_t>(lookup_levels_kernel)
    .traits(kRowWise)
    .ignores("grad_inplace", false);

AB_OP(lookup_table_v2)
    .doc(
        "Out[i, :] = W[Ids[i], :]; rows of padding_idx read as zero. The width of the table is appended to the shape "
        "of Ids.")
    .with([](OpDef& def) { look_up(def, false); });

AB_GRAD(lookup_table).with(gradient);
AB_GRAD(lookup_table_v2).with(gradient);

}  // namespace
}  // namespace anabranch::sparse::lookup_table_op
