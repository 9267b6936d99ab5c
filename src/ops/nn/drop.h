// Dropout inside of other ops: the same elements as op dropout drops with these attributes.
#pragma once
#include "opdef/op_def.h"
#include "ops/kernels/philox.h"

namespace anabranch::nn {

struct DropOptions {
  bool on = false, is_test = false;
  float rate = 0, kept = 1;  // what a kept element is multiplied by; all of them in tests
  explicit DropOptions(const ir::Op& op);
  bool draws() const { return on && !is_test; }
};

// The attribute `drops`, and those of dropout.
void drop_attrs(OpDef& def);
RandomKey drop_key(const KernelArgs& op);

// out = what is left of x, which are elements [begin, begin + n) of the whole; `mask`, of the whole, may be null. out
// may be x.
void drop(const Philox& random, const DropOptions& o, int64_t begin, int64_t n, const float* x, uint8_t* mask,
          float* out);
// The same again by its mask, of these elements; null in tests.
void drop_again(const DropOptions& o, const uint8_t* mask, int64_t n, const float* x, float* out);

}  // namespace anabranch::nn
