#include "ps/exchanger.h"

namespace anabranch::ps {
namespace {

[[noreturn]] void not_geo() {
  AB_THROW(NotFound,
           "send: this program trains alone and exchanges differences (GEO), and its Communicator does not run. Call "
           "fleet.init_worker, or Communicator.start, first");
}

}  // namespace

// From the answers to the gradients of the step.
Exchanger::Taken Exchanger::take(const Remote& variable, uint64_t* seen, Tensor* out) {
  return client_.take(variable, out, seen) ? Taken::kNew : Taken::kUnknown;
}

void Exchanger::note(const std::string&, std::span<const int64_t>) { not_geo(); }

void Exchanger::end_local_step() { not_geo(); }

void SyncExchanger::push(const Remote& to, const Gradient& gradient, Client::Batch*) { client_.push(to, gradient); }

void SyncExchanger::end_step(Client::Done done) { client_.exchange(std::move(done)); }

void AsyncExchanger::push(const Remote& to, const Gradient& gradient, Client::Batch* own) { own->push(to, gradient); }

void AsyncExchanger::end_step(Client::Done done) { done(nullptr); }

}  // namespace anabranch::ps
