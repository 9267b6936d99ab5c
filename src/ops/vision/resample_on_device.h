// The tables of ops/vision/resample.h in the form that device kernels take.
#pragma once
#include <vector>

#include "ops/device/args_vision.h"
#include "ops/device/upload.h"
#include "ops/vision/resample.h"

namespace anabranch::vision {

class QueuedTaps {
 public:
  // For an axis whose tables have been computed.
  template <class W> device::ResampleAxis of(const DeviceContext& c, const Taps<W>& taps, int64_t in, int64_t out) {
    if (in != in_ || out != out_) make(taps, in, out);
    return {from_up_.of(c, from_),
            weight_up_.of(c, weight_),
            starts_up_.of(c, starts_),
            uses_up_.of(c, uses_),
            in,
            out,
            taps.count(),
            0};
  }

 private:
  template <class W> void make(const Taps<W>& taps, int64_t in, int64_t out) {
    in_ = in;
    out_ = out;
    const int64_t n = out * taps.count();
    from_.assign(taps.from(0), taps.from(0) + n);
    weight_.assign(taps.weight(0), taps.weight(0) + n);
    starts_.assign(static_cast<size_t>(in) + 1, 0);
    for (const int32_t from : from_) ++starts_[static_cast<size_t>(from) + 1];
    for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
    std::vector<int32_t> next(starts_.begin(), starts_.end() - 1);
    uses_.resize(from_.size());
    for (int32_t k = 0; k < n; ++k) {
      uses_[static_cast<size_t>(next[static_cast<size_t>(from_[static_cast<size_t>(k)])]++)] = k;
    }
  }

  int64_t in_ = -1, out_ = -1;
  std::vector<int32_t> from_, starts_, uses_;
  std::vector<double> weight_;
  device::Upload from_up_, weight_up_, starts_up_, uses_up_;
};

}  // namespace anabranch::vision
