// The plug-in: a shared library that the package loads when a parameter server or a worker needs the network.
#include <grpc/support/log.h>

#include <cstdlib>

#include "client.h"
#include "server.h"

namespace anabranch::rpc {
namespace {

class GrpcTransport final : public ByteTransport {
 public:
  std::unique_ptr<ByteListener> listen(const std::string& endpoint, const ByteSecurity& security,
                                       const ByteLimits& limits, ByteHandler handler,
                                       std::shared_ptr<PeerCounts> counts, std::function<void(const std::string&)> tell,
                                       std::string* failure) override {
    return grpc_listen(endpoint, security, limits, std::move(handler), std::move(counts), std::move(tell), failure);
  }
  std::shared_ptr<ByteChannel> connect(const std::string& endpoint, const ByteSecurity& security,
                                       const ByteLimits& limits, std::string* failure) override {
    *failure = why_not_certificates(security);
    return failure->empty() ? grpc_connect(endpoint, security, limits) : nullptr;
  }

 private:
  const std::shared_ptr<void> threads_ = grpc_keep_threads();
};

}  // namespace
}  // namespace anabranch::rpc

extern "C" __attribute__((visibility("default"))) anabranch::rpc::ByteTransport* anabranch_byte_transport_3() {
  // Errors are reported to the caller, once; the library's own log lines are off by default.
  if (!std::getenv("GRPC_VERBOSITY")) gpr_set_log_function([](gpr_log_func_args*) {});
  static auto& transport = *new anabranch::rpc::GrpcTransport();  // never destroyed: calls may be in flight at exit
  return &transport;
}
