#pragma once
#include "ps/byte_transport.h"

namespace anabranch::ps {
std::unique_ptr<ByteListener> grpc_listen(const std::string& endpoint, const ByteSecurity& security,
                                          const ByteLimits& limits, ByteHandler handler, std::string* failure);
}  // namespace anabranch::ps
