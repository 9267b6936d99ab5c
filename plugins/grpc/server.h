#pragma once
#include "ps/byte_transport.h"

namespace anabranch::ps {
std::unique_ptr<ByteListener> grpc_listen(const std::string& endpoint, const ByteSecurity& security,
                                          const ByteLimits& limits, ByteHandler handler,
                                          std::shared_ptr<PeerCounts> counts, std::string* failure);

// gRPC keeps threads for calls back as long as there is a server or channel that uses them. Release 1.51 ends the
// process now and then (assertion on the count of its completion queue) when the last one goes and the next one comes.
// What this gives back is one more that uses them; it listens nowhere.
std::shared_ptr<void> grpc_keep_threads();
}  // namespace anabranch::ps
