// The two implementations of a 2-D convolution: oneDNN for float32, plain loops for float64.
#pragma once
#include <memory>

#include "opdef/kernel_context.h"
#include "ops/kernels/operand.h"
#include "ops/nn/conv_dims.h"

namespace anabranch::nn {

enum class ConvPass { kForward, kBackwardData, kBackwardFilter };

// Applied to elements [begin, end) of the result right after they have been computed, by the same worker: to whole
// samples, or to whole channels of plain images.
class ConvEpilogue {
 public:
  virtual ~ConvEpilogue() = default;
  virtual void finish(int64_t begin, int64_t end) const = 0;
};

struct ConvExtras {
  const ConvEpilogue* epilogue = nullptr;  // for kForward
  // Not 0: the filter is unchanged since the last run while its address and this number are the same, so it is not
  // reordered to the library's layout again.
  uint64_t filter_version = 0;
};

// One pass of one kernel; keeps state for the last shapes. Operands may be rounded (float32 only). run() computes
//   kForward: out[images] = conv(a[images], b[filter])
//   kBackwardData: out[images] from a = gradient of the output, b = filter
//   kBackwardFilter: out[filter] from a = images, b = gradient of the output
template <class T> class Conv {
 public:
  explicit Conv(ConvPass pass, Operand operand = Operand::kFull);
  ~Conv();
  void run(const KernelContext& c, const ConvDims& dims, const T* a, const T* b, T* out, const ConvExtras& extras = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace anabranch::nn
