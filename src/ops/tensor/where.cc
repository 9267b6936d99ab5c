// Selects by condition, and lists the positions where one is true: where, where_index.
#include <algorithm>
#include <array>

#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/wide_map.h"

namespace anabranch::tensor::where_op {
namespace {

template <class T> ab_kernel where_kernel() { return device::kernel_of_size("where", sizeof(T)); }

AB_OP(where)
    .doc("Out = X where Condition is true, else Y, elementwise.")
    .in("Condition", "[...] bool")
    .in("X", "[...] numbers")
    .in("Y", "like X")
    .out("Out", "like X")
    .infer([](InferContext& c) {
      check_same_shape(c, "Condition", "X");
      check_same(c, "X", "Y");
      c.same_as("Out", "X");
    })
    .grad_reads({"Condition", "X", "Y"})
    .grad_to({"X", "Y"})
    .dtype_of_input("X")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [condition = op.in("Condition"), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const bool* choose = c[condition].data<bool>();
        const T *a = c[x].data<T>(), *b = c[y].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(c[x].numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
          in_wide_vectors([=] {
            for (int64_t i = begin; i < end; ++i) {
              const T yes = a[i], no = b[i];
              to[i] = choose[i] ? yes : no;
            }
          });
        });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = where_kernel<T>(), condition = op.in("Condition"), x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](const DeviceContext& c) {
        const device::WhereArgs a{device::operand(c[condition]), device::operand(c[x]), device::operand(c[y]),
                                  device::operand(c[out]),       c[out].numel(),        1};
        c.launch(kernel, a);
      };
    });

AB_GRAD(where)
    .doc("X@GRAD = Out@GRAD where Condition is true, Y@GRAD where it is false, else 0.")
    .dtype_of_input("Out@GRAD")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [condition = op.in("Condition"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const auto keep = [&](Out to, bool needed) {
          wide_map(c, kCheapGrain, c[dout].numel(), c[condition].data<bool>(), c[dout].data<T>(),
                   c[to].mutable_data<T>(), [needed](bool is, T d) { return is == needed ? d : T(0); });
        };
        if (c.needs(dx)) keep(dx, true);
        if (c.needs(dy)) keep(dy, false);
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = where_kernel<T>(), condition = op.in("Condition"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) {
        device::WhereArgs a{device::operand(c[condition]), device::operand(c[dout]), {}, {}, c[dout].numel(), 1};
        for (const Out to : {dx, dy}) {
          if (c.needs(to)) {
            a.y = device::operand(c[to]);
            c.launch(kernel, a);
          }
          std::swap(a.x, a.other);
        }
      };
    });

// Made by straighten_blocks from a block that may not write a variable.
AB_OP(select)
    .doc("Out = X if Cond is true, else Y, bit for bit.")
    .in("Cond", "[1] bool")
    .in("X", "[...]")
    .in("Y", "like X")
    .out("Out", "like X; may alias Y")
    .effects(kEngineOnly)
    .infer([](InferContext& c) {
      check_same(c, "X", "Y");
      c.same_as("Out", "X");
    })
    .no_grad("it is for branches without gradients")
    .dtype_of_input("X")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [cond = op.in("Cond"), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const Tensor& chosen = *c[cond].data<bool>() ? c[x] : c[y];
        if (&chosen != &c[out]) copy_bytes(c, chosen, &c[out]);
      };
    })
    .device<bool, float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                                  const KernelArgs& op) -> Kernel {
      return [kernel = where_kernel<T>(), cond = op.in("Cond"), x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](const DeviceContext& c) {
        const device::WhereArgs a{device::operand(c[cond]), device::operand(c[x]), device::operand(c[y]),
                                  device::operand(c[out]),  c[out].numel(),        0};
        c.launch(kernel, a);
      };
    });

AB_OP(where_index)
    .doc("Lists the positions of the elements of Condition that are true (not 0), in row-major order.")
    .in("Condition", "[...] bool or numbers")
    .out("Out", "[number of positions, rank] int64")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      // Their number is known after counting.
      c.set_out("Out", c.runtime() ? Shape() : Shape{kUnknown, c.in("Condition").shape.rank()}, DType::kInt64);
    })
    .no_grad(kNotDifferentiable)
    .cpu<bool, float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [condition = op.in("Condition"), out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[condition].shape();
        const T* x = c[condition].data<T>();
        const int64_t total = c[condition].numel(), n = total - std::count(x, x + total, T(0));
        c[out].resize(Shape{n, s.rank()}, DType::kInt64);
        int64_t* to = c[out].mutable_data<int64_t>();
        std::array<int64_t, kMaxRank> at{};  // the row along the last axis
        const int last = s.rank() - 1;
        for (int64_t i = 0; last >= 0 && i < total;) {
          for (int64_t k = 0; k < s[last]; ++k, ++i) {
            if (x[i] == T(0)) continue;
            to = std::copy_n(at.begin(), last, to);
            *to++ = k;
          }
          for (int a = last - 1; a >= 0 && ++at[a] == s[a]; --a) at[a] = 0;
        }
      };
    });

}  // namespace
}  // namespace anabranch::tensor::where_op
