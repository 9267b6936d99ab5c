// Gathers elements along one axis: index_select takes the same indices everywhere, index_sample different ones in each
// row.
#include <algorithm>
#include <memory>

#include "opdef/device_status.h"
#include "ops/declare/declare.h"
#include "ops/device/launch_index.h"
#include "ops/kernels/ids.h"

namespace anabranch::tensor::index_axis_op {
namespace {

void check_index(const InferContext& c, int lowest, int highest) {
  check_rank(c, "Index", lowest, highest);
  check_ids_dtype(c, "Index");
}

int axis_of(const InferContext& c) { return normal_axis(c.attr<int32_t>("dim"), c.in("X").shape.rank(), "dim"); }

Shape selected_shape(const InferContext& c) {
  check_index(c, 1, 2);
  const Shape& index = c.in("Index").shape;
  AB_CHECK(index.rank() == 1 || index[1] == 1 || index[1] == kUnknown, ShapeMismatch,
           "Index must be [K] or [K, 1], got {}", index.str());
  Shape out = c.in("X").shape;
  out.set(axis_of(c), index[0]);
  return out;
}

Shape sampled_shape(const InferContext& c) {
  check_index(c, 2, 2);
  check_rank(c, "X", 2, 2);
  const Shape &x = c.in("X").shape, &index = c.in("Index").shape;
  AB_CHECK(compatible(Shape{x[0], kUnknown}, index), ShapeMismatch,
           "Index must have one row of indices per row of X {}, got {}", x.str(), index.str());
  return index;
}

// X as [outer, extent, inner], the result as [outer, places, inner]. index_sample: different indices in each row.
struct Picking {
  int64_t outer, extent, inner, places;
  bool own;
  template <class Fn> void each(const int64_t* at, Fn&& fn) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t p = 0; p < places; ++p) {
        const int64_t place = at[own ? o * places + p : p];
        fn((o * extent + place) * inner, (o * places + p) * inner);
      }
    }
  }
};

Picking picking_of(const Shape& x, const Shape& index, bool own, int dim) {
  if (own) return {x[0], x[1], 1, index[1], true};
  const int axis = dim < 0 ? dim + x.rank() : dim;
  return {x.numel(0, axis), x[axis], x.numel(axis + 1, x.rank()), index[0], false};
}

int dim_of(const KernelArgs& op, bool own) { return own ? 1 : op.attr<int32_t>("dim"); }

template <class T> Kernel forward(const KernelArgs& op, bool own) {
  return [=, x = op.in("X"), index = op.in("Index"), out = op.out("Out"), dim = dim_of(op, own),
          scratch = std::make_shared<Tensor>()](KernelContext& c) {
    const Picking p = picking_of(c[x].shape(), c[index].shape(), own, dim);
    const int64_t* at = as_int64(c[index], scratch.get());
    check_ids("Index", at, c[index].numel(), p.extent);
    const T* from = c[x].data<T>();
    T* to = c[out].mutable_data<T>();
    p.each(at, [=](int64_t a, int64_t b) { std::copy(from + a, from + a + p.inner, to + b); });
  };
}

template <class T> Kernel backward(const KernelArgs& op, bool own) {
  return [=, x = op.in("X"), index = op.in("Index"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
          dim = dim_of(op, own), scratch = std::make_shared<Tensor>()](KernelContext& c) {
    if (!c.needs(dx)) return;
    const Picking p = picking_of(c[x].shape(), c[index].shape(), own, dim);
    const int64_t* at = as_int64(c[index], scratch.get());
    check_ids("Index", at, c[index].numel(), p.extent);
    const T* from = c[dout].data<T>();
    T* to = c[dx].mutable_data<T>();
    std::fill(to, to + c[dx].numel(), T{0});
    p.each(at, [=](int64_t a, int64_t b) {
      for (int64_t k = 0; k < p.inner; ++k) to[a + k] += from[b + k];
    });
  };
}

device::PickArgs pick_args(const DeviceContext& c, const Picking& p, const Tensor& x, const Tensor& index, Tensor& y) {
  return {device::operand(x),
          device::operand(index),
          device::operand(y),
          device::fault_of(c),
          p.outer,
          p.extent,
          p.inner,
          p.places,
          p.own,
          0};
}

template <class T> Kernel forward_on_device(const KernelArgs& op, bool own) {
  return [=, kernel = device::KernelOfIds(device::stem_of_size("pick", sizeof(T))), x = op.in("X"),
          index = op.in("Index"), out = op.out("Out"), dim = dim_of(op, own)](const DeviceContext& c) {
    const Picking p = picking_of(c[x].shape(), c[index].shape(), own, dim);
    c.launch(kernel.of(c[index]), pick_args(c, p, c[x], c[index], c[out]));
  };
}

template <class T> Kernel backward_on_device(const KernelArgs& op, bool own) {
  const std::string stem = std::string("pick_grad/") + device::type_name<T>;
  return [=, kernel = device::KernelOfIds(stem), x = op.in("X"), index = op.in("Index"), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD"), dim = dim_of(op, own)](const DeviceContext& c) {
    if (!c.needs(dx)) return;
    const Picking p = picking_of(c[x].shape(), c[index].shape(), own, dim);
    c.launch(kernel.of(c[index]), pick_args(c, p, c[dout], c[index], c[dx]));
  };
}

// own: different indices in each row.
void declare_pick(const char* type, bool own) {
  OpDef& def = declare_op(type, __FILE__)
                   .doc(own ? "Selects elements of each row: Out[n, k] = X[n, Index[n, k]]."
                            : "Selects the slices of X at the positions Index along an axis.")
                   .in("X", own ? "[N, M]" : "[...]")
                   .in("Index", own ? "[N, K] int32 or int64: columns of X"
                                    : "[K] or [K, 1] int32 or int64: positions on the axis")
                   .out("Out", own ? "[N, K], dtype of X" : "shape of X with extent K on the axis; dtype of X");
  if (!own) def.attr<int32_t>("dim", 0, "axis along which slices are selected; a negative axis counts from the last");
  def.infer([own](InferContext& c) {
    c.set_out("Out", own ? sampled_shape(c) : selected_shape(c), c.in("X").dtype);
    share_fitting_lod(c, "Out", own ? "Index" : "X");
  });
  def.grad_reads({"X", "Index"}).grad_to({"X"});
  def.cpu<float, double, int32_t, int64_t>(
      [own]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op, own); });
  def.device<float, double, float16, bfloat16, int32_t, int64_t>(
      [own]<class T>(TypeTag<T>, const KernelArgs& op) { return forward_on_device<T>(op, own); });
  def.with(device_fault(1, "Index of sample {} must be at least 0 and below the extent of the axis (<Index>)"));
  declare_gradient(type, __FILE__)
      .doc("X@GRAD = Out@GRAD, added at its source.")
      .cpu<float, double>([own]<class T>(TypeTag<T>, const KernelArgs& op) { return backward<T>(op, own); })
      .device<float, double, float16, bfloat16>(
          [own]<class T>(TypeTag<T>, const KernelArgs& op) { return backward_on_device<T>(op, own); });
}

void declare_picks() {
  declare_pick("index_select", false);
  declare_pick("index_sample", true);
}

AB_OPS(declare_picks);

AB_OP(shard_index)
    .doc(
        "Out = the ids of one of nshards equal parts of [0, index_num), relative to the part's first id; ignore_value "
        "for the ids of the other parts.")
    .in("X", "[N, ...] of two axes or more, usually [N, 1]; int32 or int64 in [0, index_num)")
    .out("Out", "like X")
    .attr<int32_t>("index_num", 1, "number of ids, above 0")
    .attr<int32_t>("nshards", 1, "number of parts, above 0")
    .attr<int32_t>("shard_id", 0, "the part, in [0, nshards)")
    .attr<int32_t>("ignore_value", -1, "value for the ids of other parts")
    .infer([](InferContext& c) {
      const int32_t n = c.attr<int32_t>("index_num"), parts = c.attr<int32_t>("nshards"),
                    part = c.attr<int32_t>("shard_id");
      AB_CHECK(n > 0 && parts > 0 && part >= 0 && part < parts, InvalidArgument,
               "index_num and nshards must be above 0 and shard_id in [0, nshards), got {}, {} and {}", n, parts, part);
      const Shape& x = c.in("X").shape;
      AB_CHECK(x.rank() >= 2, ShapeMismatch, "X must have two axes or more, got {}", x.str());
      c.set_out("Out", x, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .no_grad("ids are integers")
    .cpu<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const int64_t n = op.attr<int32_t>("index_num"), parts = op.attr<int32_t>("nshards");
      return
          [=, x = op.in("X"), out = op.out("Out"), part = op.attr<int32_t>("shard_id"), size = (n + parts - 1) / parts,
           other = static_cast<T>(op.attr<int32_t>("ignore_value"))](KernelContext& c) {
            const T* from = c[x].data<T>();
            T* to = c[out].mutable_data<T>();
            for (int64_t i = 0; i < c[x].numel(); ++i) {
              AB_CHECK(from[i] >= 0 && from[i] < n, InvalidArgument, "id at position {} must be 0 to {}, got {}", i,
                       n - 1, from[i]);
              to[i] = from[i] / size == part ? static_cast<T>(from[i] % size) : other;
            }
          };
    })
    .device<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      device::ShardIndexArgs a{};
      const int64_t parts = op.attr<int32_t>("nshards");
      a.ids = op.attr<int32_t>("index_num");
      a.size = (a.ids + parts - 1) / parts;
      a.part = op.attr<int32_t>("shard_id");
      a.other = op.attr<int32_t>("ignore_value");
      return [a, kernel = device::kernel_of<T>("shard_index"), x = op.in("X"),
              out = op.out("Out")](const DeviceContext& c) mutable {
        a.x = device::operand(c[x]);
        a.y = device::operand(c[out]);
        a.n = c[x].numel();
        a.fault = device::fault_of(c);
        c.launch(kernel, a);
      };
    })
    .with(device_fault(1, "id at position {} must be at least 0 and below index_num (<X>)"));

}  // namespace
}  // namespace anabranch::tensor::index_axis_op
