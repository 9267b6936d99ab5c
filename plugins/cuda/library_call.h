// A call of a library, planned once and run in each step.
#pragma once
#include <cstddef>
#include <memory>

#include "errors.h"

namespace anabranch::cuda {

class Process;

class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  virtual size_t room() const = 0;  // workspace in bytes
  virtual void run(const ab_queue& queue, const ab_operand* operands, int count, void* workspace) const = 0;
};

// NotFound if there is no such key.
std::unique_ptr<LibraryCall> plan_call(Process& process, int device, const std::string& key, const void* desc,
                                       size_t size);

// One key each.
using PlanCall = std::unique_ptr<LibraryCall>(Process& process, int device, const void* desc, size_t size);
PlanCall plan_gemm, plan_conv, plan_batch_norm, plan_batch_norm_grad;

// A description as its struct; its bytes may be unaligned.
template <class Desc> Desc described(const char* key, const void* desc, size_t size) {
  need(size == sizeof(Desc), key, " is described by ", sizeof(Desc), " bytes, got ", size);
  Desc copy;
  memcpy(&copy, desc, sizeof copy);
  return copy;
}

// A library's call failed while work was enqueued: throws the underlying fault, if there is one, otherwise `status`
// with `text`.
[[noreturn]] void library_failed(const ab_queue& queue, ab_status status, const std::string& text);

}  // namespace anabranch::cuda
