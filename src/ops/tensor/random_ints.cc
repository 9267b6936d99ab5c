// Random integers: uniform ones, permutations, indices drawn from probabilities, seeds.
#include <numeric>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_draw.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/philox.h"
#include "ops/tensor/random_functions.h"

namespace anabranch::tensor::random_ints_op {
namespace {

DType dtype_attr(const ir::Op& op) { return dtype_from_number(op.attr<int32_t>("dtype")); }

void integer_attrs(OpDef& def) {
  def.attr<int32_t>("dtype", 3, "id of the dtype: int32 or int64")
      .attr<int32_t>("seed", 0, "seed of this op; 0: uses the seed of the program or the process")
      .effects(kRandom)
      .no_grad("random numbers");
}

// make(tag, op) for the integer type given by dtype.
template <class Make> KernelFactory of_integers(Make make) {
  return [make](const KernelArgs& op) -> Kernel {
    const DType dtype = dtype_attr(op.op());
    AB_CHECK(dtype == DType::kInt32 || dtype == DType::kInt64, Unsupported, "dtype must be int32 or int64, got {}",
             dtype_name(dtype));
    return dtype == DType::kInt32 ? make(TypeTag<int32_t>{}, op) : make(TypeTag<int64_t>{}, op);
  };
}

int64_t drawn_below(const Philox& rng, int64_t i, int64_t count) {
  return below(rng.uniform53(static_cast<uint64_t>(i)), count);
}

void infer_randint(InferContext& c) {
  const IntArg shape = int_arg(c, "ShapeTensor", "ShapeTensorList", int_attr(c.op(), "shape"), kUnknown);
  AB_CHECK(!shape.values.empty(), InvalidArgument, "shape must have at least one extent");
  for (int64_t extent : shape.values) {
    AB_CHECK(extent >= 0 || !c.runtime(), InvalidArgument, "an extent of shape must be at least 0, got {}", extent);
  }
  const int32_t low = c.attr<int32_t>("low"), high = c.attr<int32_t>("high");
  AB_CHECK(low < high, InvalidArgument, "low must be below high, got {} and {}", low, high);
  c.set_out("Out", Shape(shape.values), dtype_attr(c.op()));
}

AB_OP(randint)
    .doc("Out = random integers, uniform in [low, high).")
    .in_optional("ShapeTensor", "[rank] int: the shape")
    .in_optional_list("ShapeTensorList", "[1] int each: the extents")
    .out("Out", "as the attribute shape")
    .shape_from("ShapeTensor")
    .shape_from("ShapeTensorList")
    .attr<std::vector<int64_t>>("shape", {}, "extents")
    .required_attr("low", AttrType::kInt, "lower bound, inclusive")
    .required_attr("high", AttrType::kInt, "upper bound, exclusive")
    .with(integer_attrs)
    .infer(infer_randint)
    .cpu_any(of_integers([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const int64_t low = op.attr<int32_t>("low"), count = op.attr<int32_t>("high") - low;
      return [low, count, key = op.random(), out = op.out("Out")](KernelContext& c) {
        const Philox rng(with_step(key, c));
        T* to = c[out].mutable_data<T>();
        c.parallel_for(c[out].numel(), kMathGrain, [=](int64_t begin, int64_t end) {
          rng.each_uniform53(begin, end, [=](int64_t i, double u) { to[i] = static_cast<T>(low + below(u, count)); });
        });
      };
    }))
    .device_any(of_integers([]<class T>(TypeTag<T>, const KernelArgs& op) {
      const std::array<double, 2> ends{static_cast<double>(op.attr<int32_t>("low")),
                                       static_cast<double>(op.attr<int32_t>("high"))};
      return device::draw<T>(op, "randint", ends);
    }));

AB_OP(randperm)
    .doc("Out = the integers 0 to n - 1 in random order.")
    .source("Fisher & Yates 1938; Durstenfeld 1964, doi:10.1145/364520.364540")
    .out("Out", "[n]")
    .required_attr("n", AttrType::kInt, "number of integers, at least 1")
    .with(integer_attrs)
    .infer([](InferContext& c) {
      const int32_t n = c.attr<int32_t>("n");
      AB_CHECK(n >= 1, InvalidArgument, "n must be at least 1, got {}", n);
      c.set_out("Out", Shape{n}, dtype_attr(c.op()));
    })
    .cpu_any(of_integers([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [key = op.random(), out = op.out("Out")](KernelContext& c) {
        const Philox rng(with_step(key, c));
        T* to = c[out].mutable_data<T>();
        std::iota(to, to + c[out].numel(), T{0});
        for (int64_t i = c[out].numel() - 1; i > 0; --i) std::swap(to[i], to[drawn_below(rng, i, i + 1)]);
      };
    }));

AB_OP(sampling_id)
    .doc("Out = for each row of X the index at which its running sum exceeds a random number, uniform in [min, max).")
    .in("X", "[N, C] float, probabilities")
    .out("Out", "[N] int64 in [0, C); the last index if the row's sum is too small")
    .attr<float>("min", 0.0f, "lower bound")
    .attr<float>("max", 1.0f, "upper bound, above min")
    .attr<int32_t>("seed", 0, "seed of this op; 0: uses the seed of the program or the process")
    .effects(kRandom)
    .no_grad("random numbers")
    .infer([](InferContext& c) {
      check_rank(c, "X", 2, 2);
      AB_CHECK(c.in("X").shape[1] != 0, ShapeMismatch, "X must have at least one column, got {}",
               c.in("X").shape.str());
      const float low = c.attr<float>("min"), high = c.attr<float>("max");
      AB_CHECK(low < high, InvalidArgument, "min must be below max, got {} and {}", low, high);
      c.set_out("Out", Shape{c.in("X").shape[0]}, DType::kInt64);
      c.share_lod("Out", "X");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [low = static_cast<double>(op.attr<float>("min")), high = static_cast<double>(op.attr<float>("max")),
              key = op.random(), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Philox rng(with_step(key, c));
        const int64_t rows = c[x].shape()[0], width = c[x].shape()[1];
        const T* from = c[x].data<T>();
        int64_t* to = c[out].mutable_data<int64_t>();
        c.parallel_each(rows, std::max<int64_t>(1, kMathGrain / width), [=](int64_t r) {
          double left = low + (high - low) * rng.uniform53(static_cast<uint64_t>(r));
          int64_t k = 0;
          while (k < width - 1 && (left -= static_cast<double>(from[r * width + k])) >= 0) ++k;
          to[r] = k;
        });
      };
    });

AB_OP(seed)
    .doc("Out = seed, or a random number if seed is 0.")
    .out("Out", "[1] int32")
    .attr<int32_t>("seed", 0, "the seed; 0: a new one in each run")
    .effects(kRandom)
    .no_grad("random numbers")
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), DType::kInt32); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [seed = op.attr<int32_t>("seed"), key = op.random(), out = op.out("Out")](KernelContext& c) {
        const Philox rng(with_step(key, c));
        *c[out].mutable_data<int32_t>() = seed ? seed : static_cast<int32_t>(rng.block(0)[0]);
      };
    });

}  // namespace
}  // namespace anabranch::tensor::random_ints_op
