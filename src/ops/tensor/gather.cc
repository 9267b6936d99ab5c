// Rows picked by index and put back by index: gather, gather_nd, scatter, scatter_nd_add. An index outside is an error.
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::tensor {
namespace {

// [n] or [n, 1].
int64_t index_count(const InferContext& c, const char* slot) {
  check_ids_dtype(c, slot);
  const Shape& s = c.in(slot).shape;
  AB_CHECK(s.rank() == 1 || (s.rank() == 2 && (s[1] == 1 || s[1] == kUnknown)), ShapeMismatch,
           "{} must be [n] or [n, 1], got {}", slot, s.str());
  return s[0];
}

Shape with_rows(const Shape& s, int64_t rows) {
  AB_CHECK(s.rank() > 0, ShapeMismatch, "X must have an axis");
  Shape out = s;
  out.set(0, rows);
  return out;
}

// Reads element i of an index tensor, checked against the rows there are.
class Index {
 public:
  explicit Index(const Tensor& t) : wide_(t.dtype() == DType::kInt64), data_(t.raw()) {
    AB_CHECK(wide_ || t.dtype() == DType::kInt32, InvalidArgument, "indices must be int32 or int64, got {}",
             dtype_name(t.dtype()));
  }
  int64_t at(int64_t i, int64_t rows) const {
    const int64_t v = wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
    AB_CHECK(v >= 0 && v < rows, InvalidArgument, "index at position {} must be 0 to {}, got {}", i, rows - 1, v);
    return v;
  }

 private:
  bool wide_;
  const void* data_;
};

int64_t grain_of(int64_t width) { return std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, width)); }

// Rows of X at the positions give(i), one behind the other.
template <class Position>
void pick(const KernelContext& c, const Tensor& x, int64_t n, int64_t width, Tensor* out, Position position) {
  const size_t bytes = static_cast<size_t>(width) * dtype_size(x.dtype());
  const auto* from = static_cast<const char*>(x.raw());
  auto* to = static_cast<char*>(out->mutable_raw());
  c.parallel_for(n, grain_of(width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      copy_row(from + static_cast<size_t>(position(i)) * bytes, bytes, to + static_cast<size_t>(i) * bytes);
    }
  });
}

// Adds row i of `from` to the row position(i). In order, in one thread: positions may repeat.
template <class T, class Position>
void put_back(const Tensor& from, int64_t n, int64_t width, Tensor* to, Position position) {
  const T* rows = from.data<T>();
  T* target = to->mutable_data<T>();
  for (int64_t i = 0; i < n; ++i) {
    T* row = target + position(i) * width;
    for (int64_t k = 0; k < width; ++k) row[k] += rows[i * width + k];
  }
}

// gather_nd: the last axis of Index holds a position in the first axes of X.
struct NdIndex {
  int64_t n, width;  // positions, elements at each
  int depth;
  std::array<int64_t, kMaxRank> extents{}, steps{};

  NdIndex(const Shape& x, const Shape& index) : depth(static_cast<int>(index[index.rank() - 1])) {
    n = index.numel(0, index.rank() - 1);
    width = x.numel(depth, x.rank());
    int64_t step = 1;
    for (int a = depth - 1; a >= 0; --a) {
      extents[a] = x[a];
      steps[a] = step;
      step *= x[a];
    }
  }
  int64_t position(const Index& index, int64_t i) const {
    int64_t at = 0;
    for (int a = 0; a < depth; ++a) at += index.at(i * depth + a, extents[a]) * steps[a];
    return at;
  }
};

// What Index picks from the tensor in `slot`.
Shape gather_nd_shape(const InferContext& c, const char* slot = "X") {
  check_ids_dtype(c, "Index");
  const Shape &x = c.in(slot).shape, &index = c.in("Index").shape;
  AB_CHECK(index.rank() >= 1, ShapeMismatch, "Index must have an axis");
  const int64_t depth = index[index.rank() - 1];
  AB_CHECK(depth >= 0 && depth <= x.rank(), ShapeMismatch, "Index is {}, its last extent must be at most {} for {} {}",
           index.str(), x.rank(), slot, x.str());
  Shape out = index.slice(0, index.rank() - 1);
  for (int i = static_cast<int>(depth); i < x.rank(); ++i) out.push_back(x[i]);
  return out.rank() ? out : scalar_shape();
}

// Updates holds a row for each of Ids.
void check_rows(const InferContext& c, const char* slot) {
  check_shape(c, "Updates", with_rows(c.in(slot).shape, index_count(c, "Ids")));
}

void check_updates(const InferContext& c, const char* slot) {
  check_shape(c, "Updates", gather_nd_shape(c, slot));
  check_same_dtype(c, "Updates", slot);
}

// ---- on devices

// Rows of x, blocks of `width` elements, at ids.
class RowsAt {
 public:
  explicit RowsAt(DType dtype) : kernel_(device::stem_of_size("gather", dtype_size(dtype))) {}
  void pick(const DeviceContext& c, const Tensor& x, const Tensor& ids, int64_t width, Tensor& out) const {
    device::IndexArgs a{};
    a.x = device::operand(x);
    a.ids = device::operand(ids);
    a.y = device::operand(out);
    a.ids_count = ids.numel();
    a.height = width ? x.numel() / width : 0;
    a.width = width;
    c.launch(kernel_.of(ids), a);
  }

 private:
  device::KernelOfIds kernel_;
};

// A row of x for each id, put into y or added to it.
template <class T> class RowsInto {
 public:
  void put(const DeviceContext& c, const Tensor& x, const Tensor& ids, int64_t width, device::ScatterMode mode,
           Tensor& y) {
    const int64_t height = width ? y.numel() / width : 0;
    const device::RowGroups groups = grouped_.of(c, ids, height);
    c.launch(kernel_,
             device::ScatterArgs{device::operand(x), device::operand(y), groups, ids.numel(), width, -1, mode, 0});
  }

 private:
  ab_kernel kernel_ = device::kernel_of<T>("scatter");
  device::GroupedIds grouped_;
};

// The positions that the last axis of Index names, as ids of blocks.
class Positions {
 public:
  const Tensor& of(const DeviceContext& c, const Tensor& index, const NdIndex& nd) {
    Tensor& to = ids_.of(c, Shape{nd.n}, DType::kInt64);
    device::PositionsArgs a{};
    a.ids = device::operand(index);
    a.y = device::operand(to);
    a.n = nd.n;
    a.depth = nd.depth;
    std::copy_n(nd.extents.begin(), nd.depth, a.extent);
    c.launch(kernel_.of(index), a);
    return to;
  }

 private:
  device::KernelOfIds kernel_{"positions"};
  device::Scratch ids_;
};

AB_OP(gather)
    .doc("Out = the rows of X at Index.")
    .in("X", "[n, ...] any")
    .in("Index", "[m] or [m, 1] int32 or int64")
    .out("Out", "[m, ...]")
    .attr<bool>("overwrite", true, "the gradient of a row that is picked twice: true: of the last time, false: the sum")
    .infer([](InferContext& c) {
      c.set_out("Out", with_rows(c.in("X").shape, index_count(c, "Index")), c.in("X").dtype);
    })
    .grad_reads({"X", "Index"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), index = op.in("Index"), out = op.out("Out")](KernelContext& c) {
        const Index at(c[index]);
        const int64_t rows = c[x].rows();
        pick(c, c[x], c[out].rows(), c[x].row_elems(), &c[out], [&](int64_t i) { return at.at(i, rows); });
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [rows = RowsAt(op.dtype()), x = op.in("X"), index = op.in("Index"), out = op.out("Out")](
                 KernelContext& c) { rows.pick(DeviceContext::of(c), c[x], c[index], c[x].row_elems(), c[out]); };
    });

AB_GRAD(gather)
    .doc(
        "X@GRAD = Out@GRAD, each row where it came from; of rows that meet, the last one or, without overwrite, the "
        "sum.")
    .grad(second_order::linear)
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [overwrite = op.attr<bool>("overwrite"), index = op.in("Index"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        const Index at(c[index]);
        const int64_t rows = c[dx].rows();
        zero_bytes(c, &c[dx]);
        const int64_t n = c[dout].rows(), width = c[dx].row_elems();
        if (!overwrite) return put_back<T>(c[dout], n, width, &c[dx], [&](int64_t i) { return at.at(i, rows); });
        const T* from = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        for (int64_t i = 0; i < n; ++i) std::copy_n(from + i * width, width, to + at.at(i, rows) * width);
      };
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const auto mode = op.attr<bool>("overwrite") ? device::kScatterReplace : device::kScatterAdd;
      return [mode, rows = RowsInto<T>(), index = op.in("Index"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) mutable {
        device::fill_with_zeros(c, &c[dx]);
        rows.put(DeviceContext::of(c), c[dout], c[index], c[dx].row_elems(), mode, c[dx]);
      };
    });

AB_OP(gather_nd)
    .doc("Out = the elements, or blocks of elements, of X at the positions in the last axis of Index.")
    .in("X", "[...] any")
    .in("Index", "[..., depth] int32 or int64")
    .out("Out", "[Index's other axes, X's axes from depth on]")
    .infer([](InferContext& c) {
      c.set_out("Out", gather_nd_shape(c), c.in("X").dtype);
      share_fitting_lod(c, "Out", "X");
    })
    .grad_reads({"X", "Index"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), index = op.in("Index"), out = op.out("Out")](KernelContext& c) {
        const Index at(c[index]);
        const NdIndex nd(c[x].shape(), c[index].shape());
        pick(c, c[x], nd.n, nd.width, &c[out], [&](int64_t i) { return nd.position(at, i); });
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [rows = RowsAt(op.dtype()), positions = Positions(), x = op.in("X"), index = op.in("Index"),
              out = op.out("Out")](KernelContext& c) mutable {
        const DeviceContext& queued = DeviceContext::of(c);
        const NdIndex nd(c[x].shape(), c[index].shape());
        rows.pick(queued, c[x], positions.of(queued, c[index], nd), nd.width, c[out]);
      };
    });

AB_GRAD(gather_nd)
    .doc("X@GRAD = Out@GRAD, each block added where it came from.")
    .grad(second_order::linear)
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [index = op.in("Index"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const Index at(c[index]);
        const NdIndex nd(c[dx].shape(), c[index].shape());
        zero_bytes(c, &c[dx]);
        put_back<T>(c[dout], nd.n, nd.width, &c[dx], [&](int64_t i) { return nd.position(at, i); });
      };
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [rows = RowsInto<T>(), positions = Positions(), index = op.in("Index"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) mutable {
        const DeviceContext& queued = DeviceContext::of(c);
        const NdIndex nd(c[dx].shape(), c[index].shape());
        device::fill_with_zeros(c, &c[dx]);
        rows.put(queued, c[dout], positions.of(queued, c[index], nd), nd.width, device::kScatterAdd, c[dx]);
      };
    });

AB_OP(scatter)
    .doc(
        "Out = X with the rows at Ids replaced by those of Updates (the last one wins), or, without overwrite, set to "
        "their sum.")
    .in("X", "[n, ...] float")
    .in("Ids", "[m] or [m, 1] int32 or int64")
    .in("Updates", "[m, ...] as X")
    .out("Out", "as X")
    .may_share("X", "Out")
    .attr<bool>("overwrite", true, "false: rows that occur several times add up")
    .infer([](InferContext& c) {
      check_rows(c, "X");
      c.same_shape("Out", "X");
    })
    .grad_reads({"Ids", "Updates"})
    .grad_to({"X", "Updates"})
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [overwrite = op.attr<bool>("overwrite"), x = op.in("X"), ids = op.in("Ids"), updates = op.in("Updates"),
              out = op.out("Out")](KernelContext& c) {
        const Index at(c[ids]);
        const int64_t rows = c[out].rows(), n = c[updates].rows(), width = c[out].row_elems();
        for (int64_t i = 0; i < n; ++i) at.at(i, rows);  // nothing is changed when an index is wrong
        copy_bytes(c, c[x], &c[out]);
        T* to = c[out].mutable_data<T>();
        const T* from = c[updates].data<T>();
        for (int64_t i = 0; i < n; ++i) {
          T* row = to + at.at(i, rows) * width;
          if (overwrite)
            std::copy_n(from + i * width, width, row);
          else
            std::fill_n(row, width, T(0));
        }
        if (!overwrite) put_back<T>(c[updates], n, width, &c[out], [&](int64_t i) { return at.at(i, rows); });
      };
    })
    .device<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const auto mode = op.attr<bool>("overwrite") ? device::kScatterReplace : device::kScatterSum;
      return [mode, rows = RowsInto<T>(), x = op.in("X"), ids = op.in("Ids"), updates = op.in("Updates"),
              out = op.out("Out")](KernelContext& c) mutable {
        device::copy_whole(c, c[x], &c[out]);
        rows.put(DeviceContext::of(c), c[updates], c[ids], c[out].row_elems(), mode, c[out]);
      };
    });

AB_GRAD(scatter)
    .doc("Updates@GRAD = the rows of Out@GRAD at Ids; X@GRAD = Out@GRAD.")
    .infer([](InferContext& c) {
      check_rows(c, "Out@GRAD");
      check_same_dtype(c, "Updates", "Out@GRAD");
      grad_as(c, "X@GRAD", "Out@GRAD");
      grad_as(c, "Updates@GRAD", "Updates");
    })
    .dtype_of_input("Out@GRAD")
    .cpu<float, double>([](auto, const KernelArgs& op) -> Kernel {
      return [ids = op.in("Ids"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dupdates = op.out("Updates@GRAD")](KernelContext& c) {
        const Index at(c[ids]);
        const int64_t rows = c[dout].rows();
        if (c.wants(dx)) copy_bytes(c, c[dout], &c[dx]);
        if (c.wants(dupdates)) {
          pick(c, c[dout], c[dupdates].rows(), c[dout].row_elems(), &c[dupdates],
               [&](int64_t i) { return at.at(i, rows); });
        }
      };
    })
    .device<float, double>([](auto, const KernelArgs& op) -> Kernel {
      return [rows = RowsAt(op.dtype()), ids = op.in("Ids"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dupdates = op.out("Updates@GRAD")](KernelContext& c) {
        if (c.wants(dx)) device::copy_whole(c, c[dout], &c[dx]);
        if (c.wants(dupdates)) {
          rows.pick(DeviceContext::of(c), c[dout], c[ids], c[dout].row_elems(), c[dupdates]);
        }
      };
    });

AB_OP(scatter_nd_add)
    .doc("Out = X with Updates added at the positions of Index, which may repeat.")
    .in("X", "[...] float or integers")
    .in("Index", "[..., depth] int32 or int64: positions in the first axes of X")
    .in("Updates", "what Index picks from X")
    .out("Out", "as X")
    .may_share("X", "Out")
    .infer([](InferContext& c) {
      check_updates(c, "X");
      c.same_as("Out", "X");
    })
    .grad_reads({"Index", "Updates"})
    .grad_to({"X", "Updates"})
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return
          [x = op.in("X"), index = op.in("Index"), updates = op.in("Updates"), out = op.out("Out")](KernelContext& c) {
            const Index at(c[index]);
            const NdIndex nd(c[x].shape(), c[index].shape());
            for (int64_t i = 0; i < nd.n; ++i) nd.position(at, i);  // nothing is changed when an index is wrong
            copy_bytes(c, c[x], &c[out]);
            put_back<T>(c[updates], nd.n, nd.width, &c[out], [&](int64_t i) { return nd.position(at, i); });
          };
    })
    .device<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [rows = RowsInto<T>(), positions = Positions(), x = op.in("X"), index = op.in("Index"),
              updates = op.in("Updates"), out = op.out("Out")](KernelContext& c) mutable {
        const DeviceContext& queued = DeviceContext::of(c);
        const NdIndex nd(c[x].shape(), c[index].shape());
        device::copy_whole(c, c[x], &c[out]);
        rows.put(queued, c[updates], positions.of(queued, c[index], nd), nd.width, device::kScatterAdd, c[out]);
      };
    });

AB_GRAD(scatter_nd_add)
    .doc("X@GRAD = Out@GRAD; Updates@GRAD = Out@GRAD at the positions of Index.")
    .infer([](InferContext& c) {
      check_updates(c, "Out@GRAD");
      grad_as(c, "X@GRAD", "Out@GRAD");
      grad_as(c, "Updates@GRAD", "Updates");
    })
    .dtype_of_input("Out@GRAD")
    .cpu<float, double>([](auto, const KernelArgs& op) -> Kernel {
      return [index = op.in("Index"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dupdates = op.out("Updates@GRAD")](KernelContext& c) {
        const Index at(c[index]);
        const NdIndex nd(c[dout].shape(), c[index].shape());
        if (c.wants(dx)) copy_bytes(c, c[dout], &c[dx]);
        if (!c.wants(dupdates)) return;
        pick(c, c[dout], nd.n, nd.width, &c[dupdates], [&](int64_t i) { return nd.position(at, i); });
      };
    })
    .device<float, double>([](auto, const KernelArgs& op) -> Kernel {
      return [rows = RowsAt(op.dtype()), positions = Positions(), index = op.in("Index"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD"), dupdates = op.out("Updates@GRAD")](KernelContext& c) mutable {
        const DeviceContext& queued = DeviceContext::of(c);
        const NdIndex nd(c[dout].shape(), c[index].shape());
        if (c.wants(dx)) device::copy_whole(c, c[dout], &c[dx]);
        if (!c.wants(dupdates)) return;
        rows.pick(queued, c[dout], positions.of(queued, c[index], nd), nd.width, c[dupdates]);
      };
    });

}  // namespace
}  // namespace anabranch::tensor
