#include "opdef/completion.h"

#include "base/error.h"

namespace anabranch {

Completion& Completion::operator=(Completion&& other) noexcept {
  if (this == &other) return *this;
  Completion old(std::move(*this));
  sink_ = std::move(other.sink_);
  node_ = other.node_;
  return *this;
}

Completion::~Completion() {
  if (!sink_) return;
  fail(std::make_exception_ptr(Error(ErrorKind::kInternal, "what this op began was dropped before it ended")));
}

void Completion::end(std::exception_ptr error) noexcept {
  const std::shared_ptr<CompletionSink> sink = std::move(sink_);
  if (sink) sink->complete(node_, std::move(error));
}

AsyncContext& AsyncContext::of(KernelContext& c) {
  AB_CHECK(c.call == KernelContext::Call::kLater, Internal,
           "the kernel completes asynchronously, but its op does not declare kAsynchronous");
  return static_cast<AsyncContext&>(c);
}

}  // namespace anabranch
