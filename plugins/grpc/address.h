// Whether an address can be listened at, asked before gRPC is: that does not say why not, and it takes the place of a
// socket file that somebody else listens at.
#pragma once
#include <string>

namespace anabranch::ps {

// Why not; empty when it can. "host:port", "[address]:port", "unix:path".
std::string why_not_listen(const std::string& endpoint);

}  // namespace anabranch::ps
