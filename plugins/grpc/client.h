#pragma once
#include "ps/byte_transport.h"

namespace anabranch::ps {
std::shared_ptr<ByteChannel> grpc_connect(const std::string& endpoint, const ByteSecurity& security,
                                          const ByteLimits& limits);
}  // namespace anabranch::ps
