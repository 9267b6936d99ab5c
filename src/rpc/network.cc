// The network transport: messages over the bytes of a plug-in.
#include <arpa/inet.h>

#include <fstream>
#include <sstream>

#include "base/flags.h"
#include "base/plugin.h"
#include "rpc/byte_transport.h"
#include "rpc/transport.h"

namespace anabranch::rpc {
namespace {

ByteTransport& plugin() {
  static ByteTransport* loaded = reinterpret_cast<ByteTransportFn>(load_plugin(
      "anabranch_grpc.so", kByteTransportSymbol,
      "the network transport was built without gRPC. Servers and trainers of one process work without it"))();
  return *loaded;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  AB_CHECK(in, NotFound, "FLAGS_rpc_certificates: {} cannot be read", path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

ByteSecurity security() {
  const std::string folder = std::get<std::string>(get_flag("FLAGS_rpc_certificates"));
  if (folder.empty()) return {};
  return {read_file(folder + "/ca.pem"), read_file(folder + "/cert.pem"), read_file(folder + "/key.pem")};
}

ByteLimits limits() {
  ByteLimits out;
  out.message = static_cast<uint64_t>(std::get<int64_t>(get_flag("FLAGS_rpc_message_limit_mb"))) << 20;
  return out;
}

Bytes bytes_of(const MessageRef& m) { return {std::shared_ptr<const char>(m, m->bytes().data()), m->bytes().size()}; }

class NetworkChannel final : public Channel {
 public:
  explicit NetworkChannel(const std::string& endpoint) : endpoint_(endpoint), channel_(open(endpoint)) {}
  void call(MessageRef request, Milliseconds deadline, Answer answer) override {
    const Verb verb = request->header().verb;
    channel_->call(bytes_of(request), deadline.count(),
                   [verb, endpoint = endpoint_, answer = std::move(answer)](Bytes bytes, const ByteFailure& failure) {
                     answer(read(verb, endpoint, std::move(bytes), failure));
                   });
  }

 private:
  static std::shared_ptr<ByteChannel> open(const std::string& endpoint) {
    std::string failure;
    auto made = plugin().connect(endpoint, security(), limits(), &failure);
    AB_CHECK(made, InvalidArgument, "cannot connect to {}: {}", endpoint, failure);
    return made;
  }
  static MessageRef read(Verb verb, const std::string& endpoint, Bytes bytes, const ByteFailure& failure) {
    try {
      AB_CHECK(!failure.refused, InvalidArgument, "the server at {} rejects a request: {}", endpoint, failure.why);
      AB_CHECK(failure.why.empty(), Unavailable, "{}: {}", endpoint, failure.why);
      return Message::parse(std::move(bytes.data), bytes.size);
    } catch (const Error& e) {
      return Message::error(verb, e);
    }
  }

  const std::string endpoint_;
  const std::shared_ptr<ByteChannel> channel_;
};

class NetworkListener final : public Listener {
 public:
  NetworkListener(const std::string& endpoint, std::unique_ptr<ByteListener> listener,
                  std::shared_ptr<const PeerCounts> peers)
      : endpoint_(with_port(endpoint, listener->port())), peers_(std::move(peers)), listener_(std::move(listener)) {}
  const std::string& endpoint() const override { return endpoint_; }
  std::shared_ptr<const PeerCounts> peers() const override { return peers_; }

 private:
  static std::string with_port(const std::string& endpoint, int port) {
    const size_t colon = endpoint.rfind(':');
    if (endpoint.starts_with("unix:") || colon == std::string::npos) return endpoint;
    return fmt::format("{}:{}", endpoint.substr(0, colon), port);
  }
  const std::string endpoint_;
  const std::shared_ptr<const PeerCounts> peers_;
  const std::unique_ptr<ByteListener> listener_;
};

class NetworkTransport final : public Transport {
 public:
  std::unique_ptr<Listener> listen(const std::string& endpoint, Handler handler) override {
    const ByteSecurity certificates = security();
    AB_CHECK(on_this_machine(endpoint) || !certificates.certificate.empty() ||
                 std::get<bool>(get_flag("FLAGS_rpc_insecure")),
             InvalidArgument,
             "a server that listens on {} can be reached from other machines: set FLAGS_rpc_certificates to a folder "
             "with ca.pem, cert.pem and key.pem, or FLAGS_rpc_insecure=1 where the network is trusted",
             endpoint);
    std::string failure;
    const auto peers = std::make_shared<PeerCounts>();
    auto made = plugin().listen(
        endpoint, certificates, limits(),
        [handler = std::move(handler), peers](Bytes bytes, std::function<void(Bytes)> answer) {
          receive(handler, std::move(bytes), std::move(answer), *peers);
        },
        peers, [](const std::string& text) { fmt::print(stderr, "anabranch: {}\n", text); }, &failure);
    AB_CHECK(made, Unavailable, "cannot listen on {}: {}", endpoint, failure);
    return std::make_unique<NetworkListener>(endpoint, std::move(made), peers);
  }
  std::shared_ptr<Channel> connect(const std::string& endpoint) override {
    return std::make_shared<NetworkChannel>(endpoint);
  }

 private:
  static Bytes refusal(const Error& e) {
    auto out = Message::error(Verb::kHello, e);
    out->header().incarnation = 1;  // an answer: a retry would not help
    return bytes_of(out);
  }
  static void receive(const Handler& handler, Bytes bytes, std::function<void(Bytes)> answer, PeerCounts& peers) {
    MessageRef request;
    try {
      request = Message::parse(std::move(bytes.data), bytes.size);
    } catch (const Error& e) {
      ++peers.malformed;
      return answer(refusal(e));
    } catch (const std::bad_alloc&) {
      return answer(refusal(Error(ErrorKind::kResourceExhausted,
                                  fmt::format("the server has no memory left for a request of {} bytes", bytes.size))));
    }
    handler(std::move(request), [answer = std::move(answer)](const MessageRef& m) { answer(bytes_of(m)); });
  }
};

}  // namespace

bool on_this_machine(const std::string& endpoint) {
  if (endpoint.starts_with("unix:")) return true;
  const std::string host = endpoint.substr(0, endpoint.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  in_addr address{};  // a number, because a name such as 127.example.com may be anywhere
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

Transport& network_transport() {
  static NetworkTransport transport;
  return transport;
}

std::shared_ptr<Channel> connect_to(const std::string& endpoint) {
  return (listens_here(endpoint) ? local_transport() : network_transport()).connect(endpoint);
}

}  // namespace anabranch::rpc
