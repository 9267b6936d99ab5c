// Shifts channels of frames by one frame in time.
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/device/args_vision.h"
#include "ops/device/launch_index.h"
#include "ops/kernels/copy.h"

namespace anabranch::vision::temporal_shift_op {
namespace {

// Frames of segments: [segments * frames, channels, plane].
struct Frames {
  int64_t count, frames, channels, plane, earlier, later;  // channels below `earlier`, and from there below `later`
  Frames(const ir::Op& op, const Shape& x)
      : count(x[0]), frames(op.attr<int32_t>("seg_num")), channels(x[1]), plane(x[2] * x[3]) {
    const float ratio = op.attr<float>("shift_ratio"), all = static_cast<float>(channels);
    earlier = static_cast<int64_t>(all * ratio);
    later = static_cast<int64_t>(all * 2 * ratio);
  }
  // The offset in frames of the element of X that channel c of Out takes.
  int64_t shift(int64_t c) const { return c < earlier ? -1 : c < later ? 1 : 0; }
};

// Channel (frame, c) gets channel (frame + direction * shift, c), or zeros if the segment does not have that frame.
template <class T> void shift_frames(const KernelContext& c, const Frames& f, int64_t direction, const T* x, T* out) {
  c.parallel_each(f.count * f.channels, kCheapGrain / (f.plane + 1) + 1, [=](int64_t i) {
    const int64_t move = direction * f.shift(i % f.channels), time = i / f.channels % f.frames + move;
    T* to = out + i * f.plane;
    if (time < 0 || time >= f.frames) {
      std::fill(to, to + f.plane, T{0});
    } else {
      const T* from = x + (i + move * f.channels) * f.plane;
      std::copy(from, from + f.plane, to);
    }
  });
}

template <class T> Kernel shifts(const KernelArgs& op, const char* from, const char* to, int64_t direction) {
  return [o = op.op(), direction, x = op.in(from), out = op.out(to)](KernelContext& c) {
    shift_frames(c, Frames(o, c[x].shape()), direction, c[x].data<T>(), c[out].mutable_data<T>());
  };
}

template <class T> Kernel queued_shifts(const KernelArgs& op, const char* from, const char* to, int64_t direction) {
  return [kernel = device_kernel(device::stem_of_size("shift_frames", sizeof(T))), o = op.op(), direction,
          x = op.in(from), out = op.out(to)](const DeviceContext& c) {
    const Frames f(o, c[x].shape());
    c.launch(kernel, device::FramesArgs{device::operand(c[x]), device::operand(c[out]), f.count, f.frames, f.channels,
                                        f.plane, f.earlier, f.later, direction});
  };
}

void check_frames(const InferContext& c, const char* slot) {
  check_rank(c, slot, 4, 4);
  const int32_t frames = c.attr<int32_t>("seg_num");
  const Shape& x = c.in(slot).shape;
  AB_CHECK(frames >= 1, InvalidArgument, "seg_num must be at least 1, got {}", frames);
  AB_CHECK(x[0] < 0 || x[0] % frames == 0, InvalidArgument, "seg_num must divide the frames of {} {}, got {}", slot,
           x.str(), frames);
}

AB_OP(temporal_shift)
    .doc(
        "Shifts channels along time: the first shift_ratio C channels of each frame come from the previous frame, and "
        "the same number after them from the next frame. Frames outside the segment count as 0.")
    .source("Lin et al., TSM, ICCV 2019, arXiv:1811.08383")
    .in("X", "[N T, C, H, W] float: N segments of T frames")
    .out("Out", "like X")
    .required_attr("seg_num", AttrType::kInt, "number of frames T in a segment, at least 1")
    .attr<float>("shift_ratio", 0.25f,
                 "fraction of the channels that are shifted in each direction, above 0 and below 0.5",
                 [](const float& v) {
                   AB_CHECK(v > 0 && v < 0.5f, InvalidArgument, "shift_ratio must be above 0 and below 0.5, got {}", v);
                 })
    .infer([](InferContext& c) {
      check_frames(c, "X");
      c.same_as("Out", "X");
    })
    .grad_reads({})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return shifts<T>(op, "X", "Out", 1); })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return queued_shifts<T>(op, "X", "Out", 1);
    });

AB_GRAD(temporal_shift)
    .doc("X@GRAD = Out@GRAD with its channels shifted back.")
    .infer([](InferContext& c) {
      check_frames(c, "Out@GRAD");
      c.same_shape("X@GRAD", "Out@GRAD");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return shifts<T>(op, "Out@GRAD", "X@GRAD", -1);
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return queued_shifts<T>(op, "Out@GRAD", "X@GRAD", -1);
    });

}  // namespace
}  // namespace anabranch::vision::temporal_shift_op
