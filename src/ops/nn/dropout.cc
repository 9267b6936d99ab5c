// Drops elements at random.
#include "base/flags.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch_draw.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/philox.h"
#include "ops/kernels/wide_map.h"

namespace anabranch::nn::dropout_op {
namespace {

constexpr int64_t kGrain = 8192;
constexpr const char* kUpscale = "upscale_in_train";

struct Options {
  float rate;
  bool is_test, upscale;
  explicit Options(const ir::Op& op)
      : rate(op.attr<float>("dropout_prob")),
        is_test(op.attr<bool>("is_test")),
        upscale(op.attr<std::string>("dropout_implementation") == kUpscale) {}
  // Factor for kept elements; 0 if none is kept.
  float kept() const { return !upscale ? 1.0f : rate == 1.0f ? 0.0f : 1.0f / (1.0f - rate); }
  float in_test() const { return upscale ? 1.0f : 1.0f - rate; }
};

void infer(InferContext& c) {
  c.same_as("Out", "X");
  if (c.has_out("Mask")) {
    c.same_shape("Mask", "X");
    c.out("Mask").dtype = DType::kUInt8;
  }
}

// Masks differ between steps and replicas, even with a given seed: a constant mask would drop the same units forever.
RandomKey key_of(const KernelArgs& op) {
  RandomKey key = op.random();
  key.repeats = op.attr<bool>("fix_seed") && Flags::exact_fluid();
  return key;
}

uint64_t seed_value(const Tensor& t) {
  AB_CHECK(t.numel() == 1, InvalidArgument, "Seed must hold one number, got {}", t.shape().str());
  return static_cast<uint64_t>(t.dtype() == DType::kInt64 ? *t.data<int64_t>() : *t.data<int32_t>());
}

template <class T>
void draw(KernelContext& c, const RandomKey& key, const Options& o, const T* x, int64_t n, T* out, uint8_t* mask) {
  const Philox random(key);
  const float rate = o.rate;
  const T factor = static_cast<T>(o.kept());
  c.parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
    random.each_run(begin, end, [=](int64_t from, int64_t to, const float* u) {
      const int64_t count = to - from;
      if (mask) {
        for (int64_t i = 0; i < count; ++i) mask[from + i] = u[i] >= rate;
      }
      const T* in = x + from;
      T* made = out + from;
      for (int64_t i = 0; i < count; ++i) {
        const T kept = in[i] * factor;
        made[i] = u[i] >= rate ? kept : T{0};
      }
    });
  });
}

template <class T> Kernel forward(const KernelArgs& op) {
  const In x = op.in("X"), seed = op.in("Seed");
  const Out out = op.out("Out"), mask = op.out("Mask");
  const Options o(op.op());
  const RandomKey base = key_of(op);
  return [=](KernelContext& c) {
    const T* from = c[x].data<T>();
    T* to = c[out].mutable_data<T>();
    const int64_t n = c[x].numel();
    uint8_t* bits = needed<uint8_t>(c, mask);
    if (o.is_test) {
      const T factor = static_cast<T>(o.in_test());
      wide_map(c, kCheapGrain, n, from, to, [=](T v) { return v * factor; });
      if (bits) std::fill(bits, bits + n, uint8_t{1});
      return;
    }
    const RandomKey key = seed ? RandomKey{seed_value(c[seed])} : with_step(base, c);
    draw(c, key, o, from, n, to, bits);
  };
}

// In tests all elements are kept: none is drawn below a rate of 0.
constexpr auto forward_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  device::refuse_inputs(op, {"Seed"});
  return [o = Options(op.op()), kernel = device::kernel_of<T>("draw/dropout"), key = key_of(op), x = op.in("X"),
          out = op.out("Out"), mask = op.out("Mask")](const DeviceContext& c) {
    device::DrawArgs a = device::draw_args(key, c, c[out]);
    a.x = device::operand(c[x]);
    if (c.needs(mask)) a.mask = device::operand(c[mask]);
    a.p[0] = static_cast<double>(o.is_test ? 0.0f : o.rate);
    a.p[1] = static_cast<double>(o.is_test ? o.in_test() : o.kept());
    c.launch(kernel, a);
  };
};

AB_OP(dropout)
    .doc(
        "In training each element is dropped (set to 0) with probability dropout_prob. downgrade_in_infer keeps the "
        "others unchanged and multiplies by 1 - dropout_prob in tests; upscale_in_train divides the kept ones by 1 - "
        "dropout_prob and changes nothing in tests.")
    .source("Srivastava et al., JMLR 15, 2014")
    .in("X", "[...] float")
    .in_optional("Seed", "[1] int, instead of the attribute seed")
    .out("Out", "like X")
    .out_intermediate("Mask", "like X, uint8: 1 where the element was kept")
    .attr<float>("dropout_prob", 0.5f, "probability of dropping, 0 to 1", within("dropout_prob", 0.0f, 1.0f))
    .attr<bool>("is_test", false, "drops nothing")
    .attr<bool>("fix_seed", false, "uses the attribute seed: the same masks in every process")
    .attr<int32_t>("seed", 0, "seed of the mask, if fix_seed")
    .attr<std::string>("dropout_implementation", "downgrade_in_infer", "downgrade_in_infer or upscale_in_train",
                       one_of("dropout_implementation", {"downgrade_in_infer", kUpscale}))
    .effects(kRandom)
    .traits(kRowWise)
    .infer(infer)
    .grad_reads({}, {"Mask"})
    .grad_to({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op); })
    .device<float, double, float16, bfloat16>(forward_on_device);

AB_GRAD(dropout)
    .doc("X@GRAD = Out@GRAD where the element was kept, scaled as in the forward op, else 0.")
    .grad(second_order::diagonal)
    .may_share("Out@GRAD", "X@GRAD")
    .dtype_of_input("Out@GRAD")
    .infer([](InferContext& c) {
      check_same_shape(c, "Mask", "Out@GRAD");
      grad_as(c, "X@GRAD", "Out@GRAD", "Out@GRAD");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In mask = op.in("Mask"), dout = op.in("Out@GRAD");
      const Out dx = op.out("X@GRAD");
      const Options o(op.op());
      const T factor = static_cast<T>(o.is_test ? o.in_test() : o.kept());
      return [=](KernelContext& c) {
        const uint8_t* keep = c[mask].data<uint8_t>();
        const T* g = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        c.parallel_each(c[dout].numel(), kGrain, [=](int64_t i) {
          const T kept = g[i] * factor;
          to[i] = keep[i] ? kept : T{0};
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const Options o(op.op());
      return [factor = static_cast<double>(o.is_test ? o.in_test() : o.kept()),
              kernel = device::kernel_of<T>("dropout_grad"), mask = op.in("Mask"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](const DeviceContext& c) {
        const device::MapGradArgs a{device::operand(c[mask]), {},      device::operand(c[dout]), device::operand(c[dx]),
                                    c[dout].numel(),          {factor}};
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::nn::dropout_op
