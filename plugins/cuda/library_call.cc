#include "library_call.h"

#include <map>

#include "handles.h"

namespace anabranch::cuda {

std::unique_ptr<LibraryCall> plan_call(Process& process, int device, const std::string& key, const void* desc,
                                       size_t size) {
  static const std::map<std::string, PlanCall*> plans{{"gemm", plan_gemm},
                                                      {"conv", plan_conv},
                                                      {"batch_norm", plan_batch_norm},
                                                      {"batch_norm_grad", plan_batch_norm_grad}};
  if (const auto found = plans.find(key); found != plans.end()) return found->second(process, device, desc, size);
  fail(AB_NOT_FOUND, "cuda has no library call ", key);
}

void library_failed(const ab_queue& queue, ab_status status, const std::string& text) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaError_t found = cudaStreamIsCapturing(queue.stream, &capture);
  if (found == cudaSuccess && capture == cudaStreamCaptureStatusNone) found = cudaStreamQuery(queue.stream);
  (void)cudaGetLastError();
  if (found != cudaErrorNotReady) well(found, text);
  throw Failure(status, text);
}

}  // namespace anabranch::cuda
