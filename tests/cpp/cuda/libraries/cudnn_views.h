// The contents of descriptors of libcudnn.so.9 on the host, and the elements that they describe.
#pragma once
#include <cudnn.h>

#include <cstdint>
#include <vector>

struct cudnnTensorStruct {
  cudnnDataType_t type;
  std::vector<int> extents, strides;
};
struct cudnnFilterStruct {
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  std::vector<int> extents;
};
struct cudnnConvolutionStruct {
  std::vector<int> padding, stride, dilation;
  cudnnDataType_t type;
  cudnnMathType_t math;
  int groups = 1;
};
struct cudnnContext {};

// A tensor of any layout, of rank 4 or 5.
struct View {
  float* data;
  std::vector<int> extents, strides;
  View(const void* data, const cudnnTensorStruct& t)
      : data(static_cast<float*>(const_cast<void*>(data))), extents(t.extents), strides(t.strides) {}
  View(const void* data, const cudnnFilterStruct& f)
      : data(static_cast<float*>(const_cast<void*>(data))), extents(f.extents), strides(f.extents.size()) {
    int step = f.format == CUDNN_TENSOR_NHWC ? f.extents[1] : 1;
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (f.format == CUDNN_TENSOR_NHWC && axis == 1) {
        strides[1] = 1;
        continue;
      }
      strides[axis] = step;
      step *= extents[axis];
    }
  }
  float& at(const std::vector<int>& place) const {
    int64_t k = 0;
    for (size_t axis = 0; axis < place.size(); ++axis) k += int64_t{place[axis]} * strides[axis];
    return data[k];
  }
  // fn(place) for each element.
  template <class Fn> void each(Fn&& fn) const {
    std::vector<int> place(extents.size());
    for (;;) {
      fn(place);
      size_t axis = extents.size();
      while (axis-- > 0 && ++place[axis] == extents[axis]) place[axis] = 0;
      if (axis == static_cast<size_t>(-1)) return;
    }
  }
};

// fn(place in x, place in w) for what output `o` is made of.
template <class Fn>
void each_part(const cudnnConvolutionStruct& c, const View& x, const View& w, const std::vector<int>& o, Fn&& fn) {
  const int out_of_group = w.extents[0] / c.groups, group = o[1] / out_of_group;
  w.each([&](const std::vector<int>& k) {
    if (k[0] != o[1]) return;
    std::vector<int> from{o[0], group * w.extents[1] + k[1]};
    for (size_t d = 0; d < c.padding.size(); ++d) {
      const int at = o[d + 2] * c.stride[d] - c.padding[d] + k[d + 2] * c.dilation[d];
      if (at < 0 || at >= x.extents[d + 2]) return;
      from.push_back(at);
    }
    fn(from, k);
  });
}

// cuDNN's own check: the extents of the output follow from the others.
inline bool fit(const cudnnConvolutionStruct& c, const cudnnTensorStruct& x, const cudnnFilterStruct& w,
                const cudnnTensorStruct& y) {
  bool well = x.extents[0] == y.extents[0] && y.extents[1] == w.extents[0] && x.extents[1] == w.extents[1] * c.groups;
  for (size_t d = 0; d < c.padding.size(); ++d) {
    const int span = c.dilation[d] * (w.extents[d + 2] - 1) + 1;
    well = well && y.extents[d + 2] == (x.extents[d + 2] + 2 * c.padding[d] - span) / c.stride[d] + 1;
  }
  return well;
}
