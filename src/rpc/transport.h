// How messages get from one process to another. A transport knows bytes and deadlines, nothing of what is in them.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "rpc/byte_transport.h"
#include "rpc/message.h"

namespace anabranch::rpc {

using Milliseconds = std::chrono::milliseconds;
// Called once, from any thread. An answer may be an error message; a transport's own failures are such answers too:
// kUnavailable when the other side was not reached, or did not answer in time, and then its state is unknown.
using Answer = std::function<void(MessageRef)>;

class Channel {
 public:
  virtual ~Channel() = default;
  virtual void call(MessageRef request, Milliseconds deadline, Answer answer) = 0;
};

// The other end: called from any thread; answers once, now or later.
using Handler = std::function<void(MessageRef request, Answer answer)>;

class Listener {
 public:
  virtual ~Listener() = default;                    // returns when no handler is running any more
  virtual const std::string& endpoint() const = 0;  // with the port that was chosen
  // Null where callers are threads of this process.
  virtual std::shared_ptr<const PeerCounts> peers() const { return nullptr; }
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Listener> listen(const std::string& endpoint, Handler handler) = 0;
  virtual std::shared_ptr<Channel> connect(const std::string& endpoint) = 0;
};

// Between threads of this process: a call runs the handler in the caller's thread, and copies nothing.
Transport& local_transport();
// Between processes and machines, by gRPC; Unsupported when the plug-in is not there. Beyond this machine a server is
// listened at only with certificates, or where FLAGS_rpc_insecure says that the network is trusted.
Transport& network_transport();
// The local one if the endpoint belongs to this process, otherwise the network.
std::shared_ptr<Channel> connect_to(const std::string& endpoint);
// Whether an address can be reached from this machine only: a loopback address, localhost or a unix socket.
bool on_this_machine(const std::string& endpoint);
// Whether the endpoint belongs to this process.
bool listens_here(const std::string& endpoint);

}  // namespace anabranch::rpc
