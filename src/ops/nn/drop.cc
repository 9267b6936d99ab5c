#include "ops/nn/drop.h"

#include "base/flags.h"
#include "ops/declare/attr_checks.h"
#include "ops/kernels/simd.h"

namespace anabranch::nn {

DropOptions::DropOptions(const ir::Op& op) : on(op.attr<bool>("drops")) {
  if (!on) return;
  rate = op.attr<float>("dropout_prob");
  is_test = op.attr<bool>("is_test");
  const bool upscale = op.attr<std::string>("dropout_implementation") == "upscale_in_train";
  if (is_test) {
    kept = upscale ? 1.0f : 1.0f - rate;
  } else {
    kept = !upscale ? 1.0f : rate == 1.0f ? 0.0f : 1.0f / (1.0f - rate);
  }
}

void drop_attrs(OpDef& def) {
  def.attr<bool>("drops", false, "drops elements like op dropout with the attributes below")
      .attr<float>("dropout_prob", 0.0f, "as in dropout", within("dropout_prob", 0.0f, 1.0f))
      .attr<bool>("is_test", false, "as in dropout")
      .attr<bool>("fix_seed", false, "as in dropout")
      .attr<int32_t>("seed", 0, "as in dropout")
      .attr<std::string>("dropout_implementation", "downgrade_in_infer", "as in dropout");
}

RandomKey drop_key(const KernelArgs& op) {
  RandomKey key = op.random();
  key.repeats = op.attr<bool>("fix_seed") && Flags::exact_fluid();
  return key;
}

void drop(const Philox& random, const DropOptions& o, int64_t begin, int64_t n, const float* x, uint8_t* mask,
          float* out) {
  if (o.is_test) return simd::affine(x, o.kept, 0.0f, out, n);
  const float rate = o.rate, factor = o.kept;
  random.each_run(begin, begin + n, [=](int64_t from, int64_t to, const float* u) {
    const int64_t count = to - from;
    if (mask) {
      for (int64_t i = 0; i < count; ++i) mask[from + i] = u[i] >= rate;
    }
    const float* in = x + (from - begin);
    float* made = out + (from - begin);
    for (int64_t i = 0; i < count; ++i) {
      const float kept = in[i] * factor;
      made[i] = u[i] >= rate ? kept : 0.0f;
    }
  });
}

void drop_again(const DropOptions& o, const uint8_t* mask, int64_t n, const float* x, float* out) {
  if (!mask) return simd::affine(x, o.kept, 0.0f, out, n);
  const float factor = o.kept;
  for (int64_t i = 0; i < n; ++i) {
    const float kept = x[i] * factor;
    out[i] = mask[i] ? kept : 0.0f;
  }
}

}  // namespace anabranch::nn
