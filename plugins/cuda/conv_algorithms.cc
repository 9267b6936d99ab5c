#include "conv_algorithms.h"

#include <map>
#include <mutex>
#include <string>

#include "process.h"

namespace anabranch::cuda {
namespace {

// Proposals and timings are sorted, fastest first. Timing needs memory: if the device has none left, cuDNN's proposals
// are used.
template <class Perf, class Ask, class... Of>
std::optional<ConvAlgorithm> first_of(CudnnHandle& handle, const ConvLimits& limits, Ask* timed, Ask* proposed,
                                      Of... of) {
  constexpr int kMost = 16;
  Perf found[kMost];
  int count = 0;
  const auto ask = [&](Ask* how) {
    return handle.ask([&](cudnnHandle_t h) { return how(h, of..., kMost, &count, found); });
  };
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  if (limits.timed) {
    status = ask(timed);
    (void)cudaGetLastError();  // the error of a failed algorithm must not be reported for the next launch
  }
  if (status != CUDNN_STATUS_SUCCESS) status = ask(proposed);
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return std::nullopt;
  well(status, "conv");
  for (int k = 0; k < count; ++k) {
    const Perf& perf = found[k];
    if (perf.status != CUDNN_STATUS_SUCCESS) continue;
    if (limits.deterministic && perf.determinism != CUDNN_DETERMINISTIC) continue;
    if (limits.room >= 0 && perf.memory > static_cast<size_t>(limits.room)) continue;
    return ConvAlgorithm{perf.algo, perf.mathType, perf.memory};
  }
  return std::nullopt;
}

struct Choices {
  std::mutex mutex;
  std::map<std::string, std::optional<ConvAlgorithm>> of;  // by the bytes of a ConvDesc, layout and limits
};

}  // namespace

std::optional<ConvAlgorithm> choose_algorithm(int32_t pass, CudnnHandle& handle, const ConvDescriptors& t,
                                              const ConvLimits& limits) {
  const Cudnn& dnn = cudnn();
  switch (pass) {
    case device::kConvForward:
      return first_of<cudnnConvolutionFwdAlgoPerf_t>(handle, limits, dnn.cudnnFindConvolutionForwardAlgorithm,
                                                     dnn.cudnnGetConvolutionForwardAlgorithm_v7, t.image, t.filter,
                                                     t.conv, t.output);
    case device::kConvBackwardData:
      return first_of<cudnnConvolutionBwdDataAlgoPerf_t>(handle, limits, dnn.cudnnFindConvolutionBackwardDataAlgorithm,
                                                         dnn.cudnnGetConvolutionBackwardDataAlgorithm_v7, t.filter,
                                                         t.output, t.conv, t.image);
    default:
      return first_of<cudnnConvolutionBwdFilterAlgoPerf_t>(
          handle, limits, dnn.cudnnFindConvolutionBackwardFilterAlgorithm,
          dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7, t.image, t.output, t.conv, t.filter);
  }
}

std::optional<ConvAlgorithm> kept_choice(Process& process, int device, const device::ConvDesc& desc, bool channels_last,
                                         const ConvLimits& limits,
                                         const std::function<std::optional<ConvAlgorithm>()>& choose) {
  const auto choices = std::static_pointer_cast<Choices>(
      process.kept("convolutions", device, []() -> std::shared_ptr<void> { return std::make_shared<Choices>(); }));
  std::string key(reinterpret_cast<const char*>(&desc), sizeof desc);
  key += said(channels_last ? " last " : " first ", limits.deterministic, ' ', limits.room);
  const std::lock_guard lock(choices->mutex);
  if (const auto found = choices->of.find(key); found != choices->of.end()) return found->second;
  return choices->of[key] = choose();
}

}  // namespace anabranch::cuda
