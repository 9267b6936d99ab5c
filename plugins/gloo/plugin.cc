// The plug-in that transfers bytes between processes over TCP: one connection of Gloo for each pair of processes. The
// caller decides what is added up, and in which order.
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <exception>
#include <stdexcept>

#include "comm/wire.h"

namespace anabranch::comm {
namespace {

using std::chrono::milliseconds;

// Error texts of Gloo start with a location in its sources.
std::string text_of(const std::exception& e) {
  const std::string text = e.what();
  const size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

template <class Fn> std::string told(Fn&& fn) {
  try {
    return fn() ? "" : "ended";
  } catch (const std::exception& e) {
    return text_of(e);
  }
}

class GlooRegion final : public Region {
 public:
  explicit GlooRegion(std::unique_ptr<gloo::transport::UnboundBuffer> buffer) : buffer_(std::move(buffer)) {}
  std::string send(int to, uint64_t tag, size_t offset, size_t bytes) override {
    return told([&] { return buffer_->send(to, tag, offset, bytes), true; });
  }
  std::string receive(int from, uint64_t tag, size_t offset, size_t bytes) override {
    return told([&] { return buffer_->recv(from, tag, offset, bytes), true; });
  }
  std::string wait_sent(int64_t within_ms) override {
    return told([&] { return buffer_->waitSend(nullptr, milliseconds(within_ms)); });
  }
  std::string wait_received(int64_t within_ms) override {
    return told([&] { return buffer_->waitRecv(nullptr, milliseconds(within_ms)); });
  }
  void abort() override {
    buffer_->abortWaitSend();
    buffer_->abortWaitRecv();
  }

 private:
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class GlooWire final : public Wire {
 public:
  explicit GlooWire(std::shared_ptr<gloo::Context> context) : context_(std::move(context)) {}
  std::unique_ptr<Region> region(void* memory, size_t bytes) override {
    return std::make_unique<GlooRegion>(context_->createUnboundBuffer(memory, bytes));
  }

 private:
  const std::shared_ptr<gloo::Context> context_;
};

// Gloo asks a store for the addresses of all processes, by the numbers of their ranks, and before that for the names of
// their hosts, "rank_0" and so on, of which TCP makes no use: each is told its own.
class SwapStore final : public gloo::rendezvous::Store {
 public:
  SwapStore(const Swap& swap, int size) : swap_(swap), size_(size) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    if (!is_rank(key)) {
      host_ = data;
      return;
    }
    all_ = swap_(std::string(data.begin(), data.end()));
    if (all_.size() != static_cast<size_t>(size_)) throw std::runtime_error("the processes have not met");
  }
  std::vector<char> get(const std::string& key) override {
    if (!is_rank(key)) return host_;
    const std::string& found = all_.at(std::stoul(key));
    return {found.begin(), found.end()};
  }
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const milliseconds&) override {}

 private:
  static bool is_rank(const std::string& key) { return key.find_first_not_of("0123456789") == std::string::npos; }

  const Swap& swap_;
  const int size_;
  std::vector<char> host_;
  std::vector<std::string> all_;
};

class GlooMaker final : public WireMaker {
 public:
  std::unique_ptr<Wire> connect(int rank, int size, const std::string& host, int64_t within_ms, const Swap& swap,
                                std::string* failure) override {
    try {
      gloo::transport::tcp::attr attr;
      attr.hostname = host;
      auto device = gloo::transport::tcp::CreateDevice(attr);
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
      context->setTimeout(milliseconds(within_ms));
      SwapStore store(swap, size);
      context->connectFullMesh(store, device);
      return std::make_unique<GlooWire>(std::move(context));
    } catch (const std::exception& e) {
      *failure = text_of(e);
      return nullptr;
    }
  }
};

}  // namespace
}  // namespace anabranch::comm

extern "C" __attribute__((visibility("default"))) anabranch::comm::WireMaker* anabranch_wire_1() {
  static auto& maker = *new anabranch::comm::GlooMaker();
  return &maker;
}
