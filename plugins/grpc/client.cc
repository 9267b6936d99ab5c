#include "client.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>

#include "exchange.h"

namespace anabranch::rpc {
namespace {

// Lives until the call has ended, and then notifies its caller.
class Call final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Call(Bytes request, const ByteLimits& limits, ByteAnswer answer)
      : outgoing_(std::move(request), limits.chunk), incoming_(limits.message), answer_(std::move(answer)) {}

  void begin(grpc::GenericStub& stub, int64_t deadline_ms) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(deadline_ms));
    context_.set_wait_for_ready(false);
    stub.PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    write();
    StartRead(&chunk_in_);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (ok && !outgoing_.over()) write();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    failure_.why = incoming_.add(chunk_in_);
    if (failure_.why.empty()) {
      StartRead(&chunk_in_);
    } else {
      context_.TryCancel();
    }
  }
  void OnDone(const grpc::Status& status) override {
    if (failure_.why.empty() && !status.ok()) {
      failure_.why = status.error_message().empty() ? "the call failed" : status.error_message();
      failure_.refused = status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
    }
    if (failure_.why.empty() && !incoming_.complete()) failure_.why = "the answer ends before its end";
    const ByteAnswer answer = std::move(answer_);
    Bytes bytes;
    if (failure_.why.empty()) bytes = incoming_.take();
    const ByteFailure failure = std::move(failure_);
    delete this;
    answer(std::move(bytes), failure);
  }

 private:
  void write() {
    chunk_out_ = outgoing_.next();
    if (outgoing_.over()) {
      StartWriteLast(&chunk_out_, {});
    } else {
      StartWrite(&chunk_out_);
    }
  }

  grpc::ClientContext context_;
  Outgoing outgoing_;
  Incoming incoming_;
  grpc::ByteBuffer chunk_out_, chunk_in_;
  ByteAnswer answer_;
  ByteFailure failure_;
};

class GrpcChannel final : public ByteChannel {
 public:
  GrpcChannel(const std::string& endpoint, const ByteSecurity& security, const ByteLimits& limits)
      : limits_(limits), stub_(make(endpoint, security)) {}
  void call(Bytes request, int64_t deadline_ms, ByteAnswer answer) override {
    (new Call(std::move(request), limits_, std::move(answer)))->begin(stub_, deadline_ms);
  }

 private:
  static std::shared_ptr<grpc::Channel> make(const std::string& endpoint, const ByteSecurity& security) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);  // chunks are small, and their total is checked here
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    // Not the minimum: gRPC uses that one as the time limit for establishing a connection.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (!security.certificate.empty()) {
      credentials = grpc::SslCredentials({security.authority, security.key, security.certificate});
    }
    return grpc::CreateCustomChannel(endpoint, credentials, arguments);
  }

  const ByteLimits limits_;
  grpc::GenericStub stub_;
};

}  // namespace

std::shared_ptr<ByteChannel> grpc_connect(const std::string& endpoint, const ByteSecurity& security,
                                          const ByteLimits& limits) {
  return std::make_shared<GrpcChannel>(endpoint, security, limits);
}

}  // namespace anabranch::rpc
