// A convolution on device 0, with what it must be.
#pragma once
#include <utility>
#include <vector>

#include "harness.h"
#include "ops/device/args_library.h"

namespace anabranch::cuda {

struct Axis {
  int64_t in, kernel, stride = 1, dilation = 1, before = 0, after = 0;
};

inline ConvDesc desc_of(int32_t pass, std::vector<Axis> axes, int64_t groups = 1, bool last = false) {
  ConvDesc d{};
  d.batch = 2;
  d.in_channels = 2 * groups;
  d.out_channels = 3 * groups;
  d.groups = groups;
  d.pass = pass;
  d.dtype = AB_FLOAT32;
  WindowDesc& w = d.window;
  w.axes = static_cast<int32_t>(axes.size());
  w.channels_last = last;
  while (axes.size() < 3) axes.insert(axes.begin(), Axis{1, 1});
  for (size_t k = 0; k < 3; ++k) {
    const Axis& a = axes[k];
    w.in[k] = a.in;
    w.kernel[k] = a.kernel;
    w.stride[k] = a.stride;
    w.dilation[k] = a.dilation;
    w.before[k] = a.before;
    w.after[k] = a.after;
    w.out[k] = (a.in + a.before + a.after - a.dilation * (a.kernel - 1) - 1) / a.stride + 1;
  }
  return d;
}

struct Convolution {
  Convolution(Sim& sim, const ConvDesc& d) : d(d), queue(sim.queue("compute")) {
    const auto volume = [](const int64_t* e) { return static_cast<size_t>(e[0] * e[1] * e[2]); };
    ins = volume(d.window.in);
    outs = volume(d.window.out);
    kernels = volume(d.window.kernel);
    image = fill(sim, static_cast<size_t>(d.batch * d.in_channels) * ins, 1);
    filter = fill(sim, static_cast<size_t>(d.out_channels * d.in_channels / d.groups) * kernels, 2);
    output = fill(sim, static_cast<size_t>(d.batch * d.out_channels) * outs, 3);
  }
  static std::vector<float> fill(Sim&, size_t n, size_t seed) {
    std::vector<float> p(n);
    for (size_t i = 0; i < n; ++i) p[i] = static_cast<float>((i * 7 + seed * 5) % 11) - 5;
    return p;
  }
  int plan() { return api.library_plan(0, "conv", &d, sizeof d, &call, &workspace); }
  int run() {
    const auto operand = [](std::vector<float>& v, uint32_t access) {
      return ab_operand{v.data(), v.size() * sizeof(float), access, 0};
    };
    std::vector<float>*a = &image, *b = &filter, *c = &output;
    if (d.pass == kConvBackwardData) std::swap(a, c);
    if (d.pass == kConvBackwardFilter) std::swap(b, c);
    expected = of_host();
    const ab_operand operands[] = {operand(*a, AB_READ), operand(*b, AB_READ), operand(*c, AB_WRITE)};
    std::vector<char> scratch(workspace + 1, 0x55);
    const int status = api.library_run(queue, call, operands, 3, workspace ? scratch.data() : nullptr, workspace);
    EXPECT_EQ(scratch.back(), 0x55);
    found = *c;
    return status;
  }
  size_t place(int64_t n, int64_t c, int64_t channels, int64_t s, size_t space) const {
    const auto k = static_cast<int64_t>(space);
    return static_cast<size_t>(d.window.channels_last ? (n * k + s) * channels + c : (n * channels + c) * k + s);
  }
  std::vector<float> of_host() const {
    std::vector<float> result(d.pass == kConvForward        ? output.size()
                              : d.pass == kConvBackwardData ? image.size()
                                                            : filter.size());
    const WindowDesc& w = d.window;
    const int64_t in_group = d.in_channels / d.groups, out_group = d.out_channels / d.groups;
    for (int64_t n = 0; n < d.batch; ++n) {
      for (int64_t o = 0; o < d.out_channels; ++o) {
        for (int64_t s = 0; s < static_cast<int64_t>(outs); ++s) {
          for (int64_t c = 0; c < in_group; ++c) {
            for (int64_t k = 0; k < static_cast<int64_t>(kernels); ++k) {
              const int64_t at[3] = {s / (w.out[1] * w.out[2]), s / w.out[2] % w.out[1], s % w.out[2]};
              const int64_t by[3] = {k / (w.kernel[1] * w.kernel[2]), k / w.kernel[2] % w.kernel[1], k % w.kernel[2]};
              int64_t from = 0;
              bool inside = true;
              for (int a = 0; a < 3; ++a) {
                const int64_t i = at[a] * w.stride[a] - w.before[a] + by[a] * w.dilation[a];
                inside = inside && i >= 0 && i < w.in[a];
                from = from * w.in[a] + i;
              }
              if (!inside) continue;
              const size_t x = place(n, o / out_group * in_group + c, d.in_channels, from, ins);
              const size_t f = static_cast<size_t>((o * in_group + c) * static_cast<int64_t>(kernels) + k);
              const size_t y = place(n, o, d.out_channels, s, outs);
              if (d.pass == kConvForward) result[y] += image[x] * filter[f];
              if (d.pass == kConvBackwardData) result[x] += output[y] * filter[f];
              if (d.pass == kConvBackwardFilter) result[f] += image[x] * output[y];
            }
          }
        }
      }
    }
    return result;
  }

  const ConvDesc d;
  ab_queue* queue;
  size_t ins, outs, kernels;
  std::vector<float> image, filter, output, expected, found;
  ab_library* call = nullptr;
  size_t workspace = 0;
};

}  // namespace anabranch::cuda
