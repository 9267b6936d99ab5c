// Interface of transports that are plug-ins: bytes and types of the standard library only, so that a plug-in needs no
// symbol of the library that loads it. Failures are returned as text.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace anabranch::rpc {

struct Bytes {
  std::shared_ptr<const char> data;
  size_t size = 0;
};

struct ByteLimits {
  uint64_t message = uint64_t{16} << 30;  // of one message, checked before it is assembled
  uint64_t chunk = uint64_t{16} << 20;    // messages travel in chunks of this size
};

// Certificates for both sides (PEM); all empty: none.
struct ByteSecurity {
  std::string authority, certificate, key;
};

struct ByteFailure {
  std::string why;       // empty: success
  bool refused = false;  // the other side refuses such a request: a retry would not help
};
using ByteAnswer = std::function<void(Bytes answer, const ByteFailure& failure)>;  // once

class ByteChannel {
 public:
  virtual ~ByteChannel() = default;
  virtual void call(Bytes request, int64_t deadline_ms, ByteAnswer answer) = 0;
};

// A listener's counts of callers that disconnect, hang, or send invalid messages.
struct PeerCounts {
  std::atomic<int64_t> malformed{0};  // requests that were not a message: other bytes, too large, cut off
  std::atomic<int64_t> unread{0};     // answers whose caller had gone, or did not read them to their end
};

class ByteListener {
 public:
  virtual ~ByteListener() = default;
  virtual int port() const = 0;
};

using ByteHandler = std::function<void(Bytes request, std::function<void(Bytes)> answer)>;

class ByteTransport {
 public:
  virtual ~ByteTransport() = default;
  // Null and a failure if the endpoint is not available. `tell` gets lines for the log.
  virtual std::unique_ptr<ByteListener> listen(const std::string& endpoint, const ByteSecurity& security,
                                               const ByteLimits& limits, ByteHandler handler,
                                               std::shared_ptr<PeerCounts> counts,
                                               std::function<void(const std::string&)> tell, std::string* failure) = 0;
  // Null and a failure if the certificates cannot be used.
  virtual std::shared_ptr<ByteChannel> connect(const std::string& endpoint, const ByteSecurity& security,
                                               const ByteLimits& limits, std::string* failure) = 0;
};

// The symbol that a plug-in exports.
inline constexpr const char* kByteTransportSymbol = "anabranch_byte_transport_3";
using ByteTransportFn = ByteTransport* (*)();

}  // namespace anabranch::rpc
