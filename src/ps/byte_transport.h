// The border to transports that are plug-ins: bytes and the types of the standard library, nothing of ours, so that a
// plug-in needs no symbol of the library that loads it. Failures are told as text.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace anabranch::ps {

struct Bytes {
  std::shared_ptr<const char> data;
  size_t size = 0;
};

struct ByteLimits {
  uint64_t message = uint64_t{16} << 30;  // of one message, checked before it is gathered
  uint64_t chunk = uint64_t{16} << 20;    // messages travel in pieces of this size
};

// Certificates for both sides (PEM); all empty: none.
struct ByteSecurity {
  std::string authority, certificate, key;
};

struct ByteFailure {
  std::string why;       // empty: it went well
  bool refused = false;  // the other side does not take such a request: sending it again would not help
};
using ByteAnswer = std::function<void(Bytes answer, const ByteFailure& failure)>;  // once

class ByteChannel {
 public:
  virtual ~ByteChannel() = default;
  virtual void call(Bytes request, int64_t deadline_ms, ByteAnswer answer) = 0;
};

// What a listener has seen of callers that break off, hang, or say what nobody understands.
struct PeerCounts {
  std::atomic<int64_t> malformed{0};  // requests that were no message: other bytes, too large, cut off
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
  // Null and a failure when the endpoint cannot be had.
  virtual std::unique_ptr<ByteListener> listen(const std::string& endpoint, const ByteSecurity& security,
                                               const ByteLimits& limits, ByteHandler handler,
                                               std::shared_ptr<PeerCounts> counts, std::string* failure) = 0;
  virtual std::shared_ptr<ByteChannel> connect(const std::string& endpoint, const ByteSecurity& security,
                                               const ByteLimits& limits) = 0;
};

// What a plug-in exports under this name.
inline constexpr const char* kByteTransportSymbol = "anabranch_byte_transport_2";
using ByteTransportFn = ByteTransport* (*)();

}  // namespace anabranch::ps
