// Selects each row of the result from one of several tensors.
#include <cstring>
#include <memory>

#include "opdef/device_status.h"
#include "ops/declare/declare.h"
#include "ops/device/launch_index.h"
#include "ops/kernels/ids.h"

namespace anabranch::tensor::multiplex_op {
namespace {

// `slot` lists the candidates or, in the gradient, the single tensor that came from them.
void check_choice(const InferContext& c, const char* slot) {
  check_ids_dtype(c, "Ids");
  check_rank(c, slot, 2, kMaxRank);
  check_rank(c, "Ids", 2, 2);
  check_shape(c, "Ids", Shape{c.in(slot).shape[0], 1});
}

// The index of the tensor that row r comes from.
const int64_t* chosen(const Tensor& ids, Tensor* scratch, int64_t tensors) {
  const int64_t* id = as_int64(ids, scratch);
  check_ids("Ids", id, ids.numel(), tensors);
  return id;
}

device::MultiplexArgs multiplex_args(const Tensor& ids, Tensor& y, int count) {
  device::MultiplexArgs a{};
  a.ids = device::operand(ids);
  a.y = device::operand(y);
  a.rows = y.rows();
  a.width = y.row_elems();
  a.count = count;
  return a;
}

AB_OP(multiplex)
    .doc("Out[r] = row r of X[Ids[r]].")
    .in("Ids", "[N, 1] int32 or int64, each below the number of tensors")
    .in_list("X", "[N, ...] each, at least two")
    .out("Out", "like each X")
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      AB_CHECK(c.n_in("X") >= 2, InvalidArgument, "X must list at least 2 tensors, got {}", c.n_in("X"));
      check_choice(c, "X");
      for (int i = 0; i < c.n_in("X"); ++i) {
        AB_CHECK(c.in("X", i).kind == VarKind::kLoDTensor && compatible(c.in("X", i).shape, c.in("X").shape) &&
                     c.in("X", i).dtype == c.in("X").dtype,
                 ShapeMismatch, "X[{}] must be {} of {}, like X[0], got {} of {}", i, c.in("X").shape.str(),
                 dtype_name(c.in("X").dtype), c.in("X", i).shape.str(), dtype_name(c.in("X", i).dtype));
      }
      c.same_shape("Out", "X");
    })
    .grad_reads({"Ids"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [ids = op.in("Ids"), x = op.in("X"), out = op.out("Out"),
              scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const int64_t* id = chosen(c[ids], scratch.get(), x.count);
        const auto bytes = static_cast<size_t>(c[out].row_elems()) * dtype_size(c[out].dtype());
        char* to = static_cast<char*>(c[out].mutable_raw());
        for (int64_t r = 0; r < c[out].rows(); ++r) {
          const auto at = static_cast<size_t>(r) * bytes;
          std::memcpy(to + at, static_cast<const char*>(c.at(x, static_cast<int>(id[r])).raw()) + at, bytes);
        }
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      const In x = op.in("X");
      AB_CHECK(x.count <= device::kMostCandidates, Unsupported, "on a device X must list at most {} tensors, got {}",
               device::kMostCandidates, x.count);
      return [x, kernel = device::KernelOfIds(device::stem_of_size("multiplex", dtype_size(op.dtype()))),
              ids = op.in("Ids"), out = op.out("Out")](const DeviceContext& c) {
        device::MultiplexArgs a = multiplex_args(c[ids], c[out], x.count);
        for (int i = 0; i < x.count; ++i) a.x[i] = device::operand(c.at(x, i));
        a.fault = device::fault_of(c);
        c.launch(kernel.of(c[ids]), a);
      };
    })
    .with(device_fault(1, "Ids of sample {} must be at least 0 and below the number of tensors X (<Ids>)"));

AB_GRAD(multiplex)
    .doc("X@GRAD[i] = the rows of Out@GRAD that came from X[i], else 0.")
    .dtype_of_input("Out@GRAD")
    .infer([](InferContext& c) {
      check_choice(c, "Out@GRAD");
      for (int i = 0; i < c.n_out("X@GRAD"); ++i) {
        Meta& m = c.out("X@GRAD", i);
        m.shape = c.in("Out@GRAD").shape;
        m.dtype = c.in("Out@GRAD").dtype;
      }
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [ids = op.in("Ids"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const int64_t* id = chosen(c[ids], scratch.get(), dx.count);
        const auto bytes = static_cast<size_t>(c[dout].row_elems()) * dtype_size(c[dout].dtype());
        const char* from = static_cast<const char*>(c[dout].raw());
        for (int i = 0; i < dx.count; ++i) {
          if (!c.needs(dx, i)) continue;
          char* to = static_cast<char*>(c.at(dx, i).mutable_raw());
          for (int64_t r = 0; r < c[dout].rows(); ++r) {
            const auto at = static_cast<size_t>(r) * bytes;
            id[r] == i ? std::memcpy(to + at, from + at, bytes) : std::memset(to + at, 0, bytes);
          }
        }
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [kernel = device::KernelOfIds(device::stem_of_size("multiplex_grad", dtype_size(op.dtype()))),
              ids = op.in("Ids"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](const DeviceContext& c) {
        for (int i = 0; i < dx.count; ++i) {
          if (!c.needs(dx, i)) continue;
          device::MultiplexArgs a = multiplex_args(c[ids], c.at(dx, i), 1);
          a.x[0] = device::operand(c[dout]);
          a.own = i;
          c.launch(kernel.of(c[ids]), a);
        }
      };
    });

}  // namespace
}  // namespace anabranch::tensor::multiplex_op
