#include "conv_layout.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <numeric>

#include "kernels.h"

namespace anabranch::cuda {
namespace {

using device::ConvDesc;
using Extents = std::vector<int64_t>;

int64_t product(const Extents& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

// Of dense elements, with axis 1 second or last.
Extents strides_of(const Extents& extents, bool channels_last) {
  Extents strides(extents.size());
  int64_t step = 1;
  if (channels_last) {
    strides[1] = 1;
    step = extents[1];
  }
  for (size_t axis = extents.size(); axis-- > 0;) {
    if (channels_last && axis == 1) continue;
    strides[axis] = step;
    step *= extents[axis];
  }
  return strides;
}

Extents tensor(int64_t first, int64_t second, const int64_t* space, int32_t axes) {
  Extents extents{first, second};
  extents.insert(extents.end(), space + 3 - axes, space + 3);
  return extents;
}

// Padding of one axis of images: by cuDNN on both sides, or by copies at the start and the end.
struct Padded {
  int64_t padding, front, extent;
};

Padded pad(const device::WindowDesc& w, int d) {
  const int64_t span = w.dilation[d] * (w.kernel[d] - 1) + 1;
  const auto fits = [&](int64_t extent) { return extent >= span && (extent - span) / w.stride[d] + 1 == w.out[d]; };
  need(w.before[d] >= 0, "conv: padding must be 0 or more, got ", w.before[d]);
  if (fits(w.in[d] + 2 * w.before[d])) return {w.before[d], 0, w.in[d]};
  const int64_t extent = std::max(w.before[d] + w.in[d], (w.out[d] - 1) * w.stride[d] + span);
  need(fits(extent), "conv: ", w.out[d], " windows of ", span, " elements, ", w.stride[d], " apart, do not fit ",
       w.before[d], " elements in front of ", w.in[d]);
  return {0, w.before[d], extent};
}

// Whether both strides give the same addresses: the stride of an axis of one element does not matter.
bool same_places(const Extents& extents, const Extents& a, const Extents& b) {
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] > 1 && a[axis] != b[axis]) return false;
  }
  return true;
}

ConvOperand operand_of(Extents extents, bool stored_last, bool seen_last) {
  ConvOperand o;
  o.strides = strides_of(extents, stored_last);
  o.seen_strides = strides_of(extents, seen_last);
  o.staged = !same_places(extents, o.strides, o.seen_strides);  // a filter with one element per channel is not
  o.seen = o.extents = std::move(extents);
  return o;
}

}  // namespace

int64_t ConvOperand::count() const { return product(extents); }
int64_t ConvOperand::seen_count() const { return product(seen); }

ConvLayout::ConvLayout(const ConvDesc& desc, bool last, size_t element_bytes) : channels_last(last) {
  const device::WindowDesc& w = desc.window;
  const bool stored_last = w.channels_last != 0;
  operands = {operand_of(tensor(desc.batch, desc.in_channels, w.in, w.axes), stored_last, last),
              operand_of(tensor(desc.out_channels, desc.in_channels / desc.groups, w.kernel, w.axes), false, last),
              operand_of(tensor(desc.batch, desc.out_channels, w.out, w.axes), stored_last, last)};
  ConvOperand& image = operands[kImage];
  std::vector<int64_t> front;
  for (int d = 3 - w.axes; d < 3; ++d) {
    const Padded padded = pad(w, d);
    image.seen[front.size() + 2] = padded.extent;
    front.push_back(padded.front);
    padding.push_back(static_cast<int>(padded.padding));
    stride.push_back(static_cast<int>(w.stride[d]));
    dilation.push_back(static_cast<int>(w.dilation[d]));
  }
  image.seen_strides = strides_of(image.seen, last);
  for (size_t axis = 0; axis < front.size(); ++axis) image.first += front[axis] * image.seen_strides[axis + 2];
  image.staged = image.staged || image.padded();
  for (ConvOperand& o : operands) {
    if (!o.staged) continue;
    o.at = room;
    room += rounded_up(static_cast<size_t>(o.seen_count()) * element_bytes);
  }
}

std::vector<bool> layouts_of(const ConvDesc& desc) {
  if (desc.window.channels_last && desc.window.axes == 2) return {true, false};
  return {false};
}

size_t rounded_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

std::vector<int> narrow(const std::vector<int64_t>& v) {
  std::vector<int> narrowed;
  for (const int64_t x : v) {
    if (x > INT_MAX) fail(AB_UNSUPPORTED, "conv: cuDNN counts to ", INT_MAX, ", got ", x);
    narrowed.push_back(static_cast<int>(x));
  }
  return narrowed;
}

void copy_elements(cudaStream_t stream, const ConvOperand& operand, size_t element_bytes, void* stored, void* seen,
                   bool in) {
  const char* key = element_bytes == 2 ? "copy/i16" : element_bytes == 4 ? "copy/i32" : "copy/i64";
  const ab_kernel kernel = find_kernel_of(key);
  if (!kernel) fail(AB_INTERNAL, "conv: there is no kernel ", key);
  device::CopyArgs a{};
  const uint64_t stored_bytes = static_cast<uint64_t>(operand.count()) * element_bytes;
  const uint64_t seen_bytes = static_cast<uint64_t>(operand.seen_count()) * element_bytes;
  a.x = in ? device::DeviceIn{stored, stored_bytes} : device::DeviceIn{seen, seen_bytes};
  a.out = in ? device::DeviceOut{seen, seen_bytes} : device::DeviceOut{stored, stored_bytes};
  (in ? a.out_first : a.x_first) = operand.first;
  const Extents &to = in ? operand.seen_strides : operand.strides, &from = in ? operand.strides : operand.seen_strides;
  std::vector<size_t> order(to.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return to[x] > to[y]; });
  for (const size_t axis : order) {
    const int32_t at = a.axes.rank++;
    a.axes.extent[at] = operand.extents[axis];
    a.axes.stride[0][at] = to[axis];
    a.axes.stride[1][at] = from[axis];
  }
  well(run_kernel(kernel, stream, &a, nullptr, 0), "conv: copying an operand");
}

}  // namespace anabranch::cuda
