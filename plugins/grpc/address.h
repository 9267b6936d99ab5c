// Checks whether an address can be listened on before gRPC tries: gRPC does not report the reason, and replaces a
// socket file on which another process listens.
#pragma once
#include <string>

namespace anabranch::ps {

// The reason why not; empty if it can. "host:port", "[address]:port", "unix:path".
std::string why_not_listen(const std::string& endpoint);

}  // namespace anabranch::ps
