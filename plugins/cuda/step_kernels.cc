#include "step_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "errors.h"
#include "ops/device/launch_size.h"
#include "step_text.h"

// The text of step_functions.cu, as nvcc has compiled it.
asm(".section .rodata\n"
    ".hidden anabranch_step_functions, anabranch_step_functions_end\n"
    ".global anabranch_step_functions, anabranch_step_functions_end\n"
    "anabranch_step_functions:\n"
    ".incbin \"" AB_STEP_FUNCTIONS
    "\"\n"
    "anabranch_step_functions_end:\n"
    ".previous\n");
extern "C" const char anabranch_step_functions[], anabranch_step_functions_end[];

namespace anabranch::cuda {
namespace {

using device::ElementStep;
using device::ElementStepsArgs;

constexpr const char* kStem = "element_steps/";

class StepKernel final : public MadeKernel {
 public:
  StepKernel(const std::string& text, int pack, int bytes) : pack_(pack), pack_bytes_(pack * bytes) {
    char log[1024] = "";
    cudaJitOption options[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    cudaLibrary_t loaded = nullptr;
    check(cudaLibraryLoadData(&loaded, text.c_str(), options, values, 2, nullptr, nullptr, 0), log);
    library_.reset(loaded);
    check(cudaLibraryGetKernel(&by_one_, loaded, kOneEntry), log);
    if (pack_ > 1) check(cudaLibraryGetKernel(&by_pack_, loaded, kPackEntry), log);
  }

  cudaError_t launch(cudaStream_t stream, const void* args) const override {
    ElementStepsArgs a;
    memcpy(&a, args, sizeof a);
    if (a.n <= 0) return cudaSuccess;
    const bool packs = takes_packs(a);
    const unsigned blocks = device::blocks_of(packs ? a.n / pack_ : a.n);
    void* parameters[] = {&a};
    return cudaLaunchKernel(reinterpret_cast<const void*>(packs ? by_pack_ : by_one_), dim3(blocks),
                            dim3(device::kBlock), parameters, 0, stream);
  }

 private:
  struct Unload {
    void operator()(cudaLibrary_t library) const { (void)cudaLibraryUnload(library); }
  };

  static void check(cudaError_t error, const char* log) {
    if (error == cudaSuccess) return;
    (void)cudaGetLastError();
    if (status_of(error) == AB_FAULT) raise(error, "compiling a kernel");
    fail(AB_UNSUPPORTED, "the driver does not compile a kernel: ", cudaGetErrorString(error), *log ? ": " : "", log);
  }

  bool takes_packs(const ElementStepsArgs& a) const {
    const auto fits = [&](const void* p) { return reinterpret_cast<uintptr_t>(p) % pack_bytes_ == 0; };
    const auto whole = [&](const device::StepInput& in) { return in.period == 0 && fits(in.x.address); };
    return pack_ > 1 && a.n >= device::kManyElements && a.n % pack_ == 0 && std::all_of(a.in, a.in + a.inputs, whole) &&
           std::all_of(a.out, a.out + a.outs, [&](const device::DeviceOut& out) { return fits(out.address); });
  }

  const int pack_;  // elements
  const uintptr_t pack_bytes_;
  std::unique_ptr<std::remove_pointer_t<cudaLibrary_t>, Unload> library_;
  cudaKernel_t by_one_ = nullptr, by_pack_ = nullptr;
};

}  // namespace

const PtxFunctions& step_functions() {
  static const PtxFunctions all({anabranch_step_functions, anabranch_step_functions_end});
  return all;
}

std::shared_ptr<const MadeKernel> make_step_kernel(const std::string& key, const void* table, size_t size) {
  if (key.compare(0, strlen(kStem), kStem) != 0) fail(AB_UNSUPPORTED, "kernel ", key, " is not made for a table");
  need(size > 0 && size % sizeof(ElementStep) == 0, "a table of steps must have whole steps, got ", size, " bytes");
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const MadeKernel>> made;
  const std::lock_guard lock(mutex);
  std::erase_if(made, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<const MadeKernel>& known = made[key + std::string(static_cast<const char*>(table), size)];
  if (auto kernel = known.lock()) return kernel;
  std::vector<ElementStep> steps(size / sizeof(ElementStep));
  memcpy(steps.data(), table, size);
  const StepType type{key.substr(strlen(kStem))};
  auto kernel = std::make_shared<const StepKernel>(step_text(step_functions(), steps, type),
                                                   elements_of_pack(step_functions(), steps, type), type.bytes());
  known = kernel;
  return kernel;
}

}  // namespace anabranch::cuda
