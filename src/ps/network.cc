// The network transport: messages over the bytes of a plug-in.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/flags.h"
#include "ps/byte_transport.h"
#include "ps/transport.h"

namespace anabranch::ps {
namespace {

constexpr const char* kFile = "anabranch_grpc.so";

// Beside the file that this code is in, as an installation has it, or in the folder of a build.
std::string find_plugin() {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<void*>(&find_plugin), &here) || !here.dli_fname) return {};
  char real[PATH_MAX];
  for (const std::string& file :
       {std::string(here.dli_fname), std::string(realpath(here.dli_fname, real) ? real : "")}) {
    const size_t slash = file.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
    for (const char* below : {"/", "/python/"}) {
      if (access((folder + below + kFile).c_str(), R_OK) == 0) return folder + below + kFile;
    }
  }
  return {};
}

ByteTransport& plugin() {
  static ByteTransport* loaded = [] {
    const std::string file = find_plugin();
    AB_CHECK(!file.empty(), Unsupported,
             "the network transport {} is not in this installation: it was built without gRPC. Servers and trainers of "
             "one process work without it",
             kFile);
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    AB_CHECK(library, Unsupported, "the network transport {} cannot be loaded: {}", file, dlerror());
    const auto make = reinterpret_cast<ByteTransportFn>(dlsym(library, kByteTransportSymbol));
    AB_CHECK(make, Unsupported, "{} is a transport of another version", file);
    return make();
  }();
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

bool on_this_machine(const std::string& endpoint) {
  for (const char* prefix : {"127.", "localhost:", "[::1]:", "unix:"}) {
    if (endpoint.starts_with(prefix)) return true;
  }
  return false;
}

Bytes bytes_of(const MessageRef& m) { return {std::shared_ptr<const char>(m, m->bytes().data()), m->bytes().size()}; }

class NetworkChannel final : public Channel {
 public:
  explicit NetworkChannel(const std::string& endpoint)
      : endpoint_(endpoint), channel_(plugin().connect(endpoint, security(), limits())) {}
  void call(MessageRef request, Milliseconds deadline, Answer answer) override {
    const Verb verb = request->header().verb;
    channel_->call(bytes_of(request), deadline.count(),
                   [verb, endpoint = endpoint_, answer = std::move(answer)](Bytes bytes, const ByteFailure& failure) {
                     answer(read(verb, endpoint, std::move(bytes), failure));
                   });
  }

 private:
  static MessageRef read(Verb verb, const std::string& endpoint, Bytes bytes, const ByteFailure& failure) {
    try {
      AB_CHECK(!failure.refused, InvalidArgument, "the server at {} refuses a request: {}", endpoint, failure.why);
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
  NetworkListener(const std::string& endpoint, std::unique_ptr<ByteListener> listener)
      : endpoint_(with_port(endpoint, listener->port())), listener_(std::move(listener)) {}
  const std::string& endpoint() const override { return endpoint_; }

 private:
  static std::string with_port(const std::string& endpoint, int port) {
    const size_t colon = endpoint.rfind(':');
    if (endpoint.starts_with("unix:") || colon == std::string::npos) return endpoint;
    return fmt::format("{}:{}", endpoint.substr(0, colon), port);
  }
  const std::string endpoint_;
  const std::unique_ptr<ByteListener> listener_;
};

class NetworkTransport final : public Transport {
 public:
  std::unique_ptr<Listener> listen(const std::string& endpoint, Handler handler) override {
    const ByteSecurity certificates = security();
    AB_CHECK(on_this_machine(endpoint) || !certificates.certificate.empty() ||
                 std::get<bool>(get_flag("FLAGS_rpc_insecure")),
             InvalidArgument,
             "a server that listens at {} can be reached from other machines: set FLAGS_rpc_certificates to a folder "
             "with ca.pem, cert.pem and key.pem, or FLAGS_rpc_insecure=1 where the network is trusted",
             endpoint);
    std::string failure;
    auto made = plugin().listen(
        endpoint, certificates, limits(),
        [handler = std::move(handler)](Bytes bytes, std::function<void(Bytes)> answer) {
          receive(handler, std::move(bytes), std::move(answer));
        },
        &failure);
    AB_CHECK(made, Unavailable, "no server can listen at {}: {}", endpoint, failure);
    return std::make_unique<NetworkListener>(endpoint, std::move(made));
  }
  std::shared_ptr<Channel> connect(const std::string& endpoint) override {
    return std::make_shared<NetworkChannel>(endpoint);
  }

 private:
  static void receive(const Handler& handler, Bytes bytes, std::function<void(Bytes)> answer) {
    MessageRef request;
    try {
      request = Message::parse(std::move(bytes.data), bytes.size);
    } catch (const Error& e) {
      auto refusal = Message::error(Verb::kHello, e);
      refusal->header().incarnation = 1;  // an answer: sending it again would not help
      return answer(bytes_of(refusal));
    }
    handler(std::move(request), [answer = std::move(answer)](const MessageRef& m) { answer(bytes_of(m)); });
  }
};

}  // namespace

Transport& network_transport() {
  static NetworkTransport transport;
  return transport;
}

std::shared_ptr<Channel> connect_to(const std::string& endpoint) {
  return (listens_here(endpoint) ? local_transport() : network_transport()).connect(endpoint);
}

}  // namespace anabranch::ps
