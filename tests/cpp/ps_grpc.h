// The network of servers, where it was built.
#pragma once
#include "base/error.h"
#include "base/plugin.h"
#include "rpc/byte_transport.h"

namespace anabranch::rpc {

// Null without gRPC, and under ThreadSanitizer, which does not know its locks.
inline ByteTransport* network() {
#ifdef __SANITIZE_THREAD__
  return nullptr;
#endif
  try {
    return reinterpret_cast<ByteTransportFn>(load_plugin("anabranch_grpc.so", kByteTransportSymbol, "none here"))();
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace anabranch::rpc
