// Dropout inside other ops: drops the same elements as op dropout with these attributes.
#pragma once
#include "opdef/op_def.h"
#include "ops/kernels/philox.h"

namespace anabranch::nn {

struct DropOptions {
  bool on = false, is_test = false;
  float rate = 0, kept = 1;  // factor for kept elements; in tests all are kept
  explicit DropOptions(const ir::Op& op);
  bool draws() const { return on && !is_test; }
};

// The attribute `drops`, and those of dropout.
void drop_attrs(OpDef& def);
RandomKey drop_key(const KernelArgs& op);

// out = x after dropout, for elements [begin, begin + n) of the whole; `mask`, of the whole, may be null. out may alias
// x.
void drop(const Philox& random, const DropOptions& o, int64_t begin, int64_t n, const float* x, uint8_t* mask,
          float* out);
// The same with a given mask of these elements; null in tests.
void drop_again(const DropOptions& o, const uint8_t* mask, int64_t n, const float* x, float* out);

}  // namespace anabranch::nn
