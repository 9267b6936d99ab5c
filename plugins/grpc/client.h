#pragma once
#include "rpc/byte_transport.h"

namespace anabranch::rpc {
std::shared_ptr<ByteChannel> grpc_connect(const std::string& endpoint, const ByteSecurity& security,
                                          const ByteLimits& limits);
}  // namespace anabranch::rpc
