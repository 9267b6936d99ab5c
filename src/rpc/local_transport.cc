#include <map>
#include <mutex>
#include <shared_mutex>

#include "rpc/transport.h"

namespace anabranch::rpc {
namespace {

// The entry outlives its listener: later callers get an error.
struct Door {
  std::shared_mutex in_use;
  Handler handler;
};

struct Doors {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Door>> open;
};
Doors& doors() {
  static auto& all = *new Doors();
  return all;
}

std::shared_ptr<Door> find(const std::string& endpoint) {
  const std::lock_guard lock(doors().mutex);
  const auto it = doors().open.find(endpoint);
  return it == doors().open.end() ? nullptr : it->second;
}

class LocalListener final : public Listener {
 public:
  LocalListener(std::string endpoint, std::shared_ptr<Door> door)
      : endpoint_(std::move(endpoint)), door_(std::move(door)) {}
  ~LocalListener() override {
    {
      const std::lock_guard lock(doors().mutex);
      doors().open.erase(endpoint_);
    }
    const std::unique_lock alone(door_->in_use);
    door_->handler = nullptr;
  }
  const std::string& endpoint() const override { return endpoint_; }

 private:
  const std::string endpoint_;
  const std::shared_ptr<Door> door_;
};

class LocalChannel final : public Channel {
 public:
  explicit LocalChannel(std::string endpoint) : endpoint_(std::move(endpoint)) {}
  void call(MessageRef request, Milliseconds, Answer answer) override {
    const std::shared_ptr<Door> door = find(endpoint_);
    if (door) {
      const std::shared_lock inside(door->in_use);
      if (door->handler) return door->handler(std::move(request), std::move(answer));
    }
    const Error gone(ErrorKind::kUnavailable, fmt::format("no server of this process listens on {}", endpoint_));
    answer(Message::error(request->header().verb, gone));
  }

 private:
  const std::string endpoint_;
};

class LocalTransport final : public Transport {
 public:
  std::unique_ptr<Listener> listen(const std::string& endpoint, Handler handler) override {
    auto door = std::make_shared<Door>();
    door->handler = std::move(handler);
    const std::lock_guard lock(doors().mutex);
    const bool fresh = doors().open.try_emplace(endpoint, door).second;
    AB_CHECK(fresh, InvalidArgument, "a server of this process listens on {} already", endpoint);
    return std::make_unique<LocalListener>(endpoint, std::move(door));
  }
  std::shared_ptr<Channel> connect(const std::string& endpoint) override {
    return std::make_shared<LocalChannel>(endpoint);
  }
};

}  // namespace

Transport& local_transport() {
  static LocalTransport transport;
  return transport;
}

bool listens_here(const std::string& endpoint) { return find(endpoint) != nullptr; }

}  // namespace anabranch::rpc
