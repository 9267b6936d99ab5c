#include "server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "accept_loop.h"
#include "address.h"
#include "exchange.h"

namespace anabranch::rpc {
namespace {

constexpr std::chrono::seconds kGrace{1};
constexpr int kHandshakeMs = 20000;  // a connection that says nothing keeps its descriptor for no longer

// One request. The handler may answer when the caller has long gone: what it holds outlives the stream.
class Request final : public grpc::ServerGenericBidiReactor {
 public:
  Request(const ByteHandler& handler, const ByteLimits& limits, const std::shared_ptr<PeerCounts>& counts)
      : handler_(handler), limits_(limits), incoming_(limits.message), desk_(std::make_shared<Desk>(this, counts)) {
    StartRead(&chunk_in_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      if (!asked_) refuse("the request ends before its end");
      return;
    }
    const std::string failure = incoming_.add(chunk_in_);
    if (!failure.empty()) return refuse(failure);
    if (!incoming_.complete()) return StartRead(&chunk_in_);
    {
      const std::lock_guard lock(desk_->mutex);
      asked_ = true;
    }
    handler_(incoming_.take(), [desk = desk_](Bytes answer) { desk->answer(std::move(answer)); });
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return end({grpc::StatusCode::CANCELLED, "the caller has gone"});
    write();
  }
  // A read or a write that is under way ends by itself then; a request that waits for its answer does not.
  void OnCancel() override {
    const std::lock_guard lock(desk_->mutex);
    if (asked_ && !outgoing_) end({grpc::StatusCode::CANCELLED, "the caller has gone"});
  }
  void OnDone() override {
    desk_->close();
    if (outgoing_ && !written_) ++desk_->counts->unread;
    delete this;
  }

 private:
  struct Desk {
    Desk(Request* r, std::shared_ptr<PeerCounts> c) : request(r), counts(std::move(c)) {}
    void answer(Bytes bytes) {
      const std::lock_guard lock(mutex);
      if (!request || !request->reply(std::move(bytes))) ++counts->unread;
    }
    void close() {
      const std::lock_guard lock(mutex);
      request = nullptr;
    }
    std::mutex mutex;
    Request* request;
    const std::shared_ptr<PeerCounts> counts;
  };

  // False: the caller has gone.
  bool reply(Bytes bytes) {
    if (ended_.load()) return false;
    outgoing_ = std::make_unique<Outgoing>(std::move(bytes), limits_.chunk);
    write();
    return true;
  }
  void refuse(const std::string& why) {
    ++desk_->counts->malformed;
    end({grpc::StatusCode::INVALID_ARGUMENT, why});
  }
  void write() {
    if (outgoing_->over()) {
      written_ = true;
      return end(grpc::Status::OK);
    }
    chunk_out_ = outgoing_->next();
    StartWrite(&chunk_out_);
  }
  void end(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }

  const ByteHandler& handler_;
  const ByteLimits& limits_;
  Incoming incoming_;
  std::unique_ptr<Outgoing> outgoing_;
  grpc::ByteBuffer chunk_in_, chunk_out_;
  bool asked_ = false, written_ = false;
  std::atomic<bool> ended_{false};
  std::shared_ptr<Desk> desk_;
};

class Refused final : public grpc::ServerGenericBidiReactor {
 public:
  Refused() { Finish({grpc::StatusCode::UNIMPLEMENTED, "this server has no such method"}); }
  void OnDone() override { delete this; }
};

std::shared_ptr<grpc::ServerCredentials> credentials_of(const ByteSecurity& security) {
  if (security.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = security.authority;
  options.pem_key_cert_pairs.push_back({security.key, security.certificate});
  return grpc::SslServerCredentials(options);
}

class GrpcListener final : public ByteListener, private grpc::CallbackGenericService {
 public:
  GrpcListener(const ByteLimits& limits, ByteHandler handler, std::shared_ptr<PeerCounts> counts)
      : limits_(limits), handler_(std::move(handler)), counts_(std::move(counts)) {}
  ~GrpcListener() override {
    if (!server_) return;
    accepting_->stop();
    std::promise<void> over;
    // gRPC waits for callers that do not read.
    std::thread cuts([this, ended = over.get_future()] {
      if (ended.wait_for(kGrace) == std::future_status::timeout) accepting_->cut();
    });
    server_->Shutdown(std::chrono::system_clock::now() + kGrace);
    over.set_value();
    cuts.join();
  }
  bool start(std::vector<Socket> sockets, const std::string& endpoint, const ByteSecurity& security,
             std::function<void(const std::string&)> tell) {
    grpc::ServerBuilder builder;
    auto taken = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_of(security));
    builder.SetMaxReceiveMessageSize(static_cast<int>(limits_.chunk + 1024));
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    if (!server_) return false;
    port_ = sockets.front().port();
    accepting_ = std::make_unique<AcceptLoop>(std::move(sockets), endpoint, std::move(taken), std::move(tell));
    return true;
  }
  int port() const override { return port_; }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method() != kMethod) return new Refused();
    return new Request(handler_, limits_, counts_);
  }

  const ByteLimits limits_;
  const ByteHandler handler_;
  const std::shared_ptr<PeerCounts> counts_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<AcceptLoop> accepting_;
};

}  // namespace

std::shared_ptr<void> grpc_keep_threads() {
  struct Kept {
    grpc::CallbackGenericService service;
    std::unique_ptr<grpc::Server> server;
  };
  auto kept = std::make_shared<Kept>();
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&kept->service);
  kept->server = builder.BuildAndStart();
  return kept;
}

// gRPC does not say whether a key fits its certificate, except that no server starts with them.
std::string why_not_certificates(const ByteSecurity& security) {
  if (security.certificate.empty()) return {};
  grpc::CallbackGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.RegisterCallbackGenericService(&service);
  builder.AddListeningPort("127.0.0.1:0", credentials_of(security), &port);
  if (builder.BuildAndStart()) return {};
  return "the certificates cannot be used: cert.pem and key.pem do not fit each other, or a file of "
         "FLAGS_rpc_certificates is not PEM";
}

std::unique_ptr<ByteListener> grpc_listen(const std::string& endpoint, const ByteSecurity& security,
                                          const ByteLimits& limits, ByteHandler handler,
                                          std::shared_ptr<PeerCounts> counts,
                                          std::function<void(const std::string&)> tell, std::string* failure) {
  *failure = why_not_certificates(security);
  if (!failure->empty()) return nullptr;
  std::vector<Socket> sockets = listening_sockets(endpoint, failure);
  if (!failure->empty()) {
    *failure = "the address cannot be listened at: " + *failure;
    return nullptr;
  }
  auto listener = std::make_unique<GrpcListener>(limits, std::move(handler), std::move(counts));
  if (listener->start(std::move(sockets), endpoint, security, std::move(tell))) return listener;
  *failure = "gRPC does not start";
  return nullptr;
}

}  // namespace anabranch::rpc
