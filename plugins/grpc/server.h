#pragma once
#include "rpc/byte_transport.h"

namespace anabranch::rpc {
std::unique_ptr<ByteListener> grpc_listen(const std::string& endpoint, const ByteSecurity& security,
                                          const ByteLimits& limits, ByteHandler handler,
                                          std::shared_ptr<PeerCounts> counts,
                                          std::function<void(const std::string&)> tell, std::string* failure);

// The reason why these certificates cannot be used; empty if they can, or there are none.
std::string why_not_certificates(const ByteSecurity& security);

// gRPC keeps threads for callbacks as long as a server or channel uses them. Release 1.51 sometimes aborts the process
// (assertion on the count of its completion queue) when a new user is created while the last one is destroyed. The
// object returned here is a further user, which prevents this; it does not listen.
std::shared_ptr<void> grpc_keep_threads();
}  // namespace anabranch::rpc
