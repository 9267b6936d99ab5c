// A port of this machine that passes bytes on to another one: it starts late, as a busy machine does, or stops to read
// what comes back, as a peer that hangs does, or reads it byte by byte.
#pragma once
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace anabranch::ps {

class SlowRelay {
 public:
  // After `back` bytes of answers one comes through every `pace`; none where that is 0.
  SlowRelay(int port, std::chrono::milliseconds late, size_t back = SIZE_MAX,
            std::chrono::milliseconds pace = std::chrono::milliseconds(0))
      : to_(port), late_(late), back_(back), pace_(pace) {
    const sockaddr_in any = address(0);
    bind(listener_, reinterpret_cast<const sockaddr*>(&any), sizeof(any));
    listen(listener_, 16);
    thread_ = std::thread([this] { pass_on(accept(listener_, nullptr, nullptr)); });
  }
  ~SlowRelay() {
    over_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  SlowRelay(const SlowRelay&) = delete;
  std::string endpoint() const {
    sockaddr_in own{};
    socklen_t size = sizeof(own);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size);
    return "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }

 private:
  static sockaddr_in address(int port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out.sin_port = htons(static_cast<uint16_t>(port));
    return out;
  }
  void pass_on(int from) {
    if (from < 0) return;
    std::this_thread::sleep_for(late_);
    const int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in there = address(to_);
    if (connect(to, reinterpret_cast<const sockaddr*>(&there), sizeof(there)) == 0) {
      while (one_way(from, to)) {
      }
    }
    close(to);
    close(from);
  }
  bool one_way(int a, int b) {
    const bool slow = back_ == 0;
    pollfd both[] = {{a, POLLIN, 0}, {slow && pace_.count() == 0 ? -1 : b, POLLIN, 0}};
    poll(both, 2, 100);
    if (over_) return false;
    if (slow) std::this_thread::sleep_for(pace_);
    char bytes[4096];
    for (int i = 0; i < 2; ++i) {
      if (both[i].revents == 0) continue;
      const size_t most = i == 0 ? sizeof(bytes) : slow ? 1 : std::min(sizeof(bytes), back_);
      const ssize_t n = read(both[i].fd, bytes, most);
      if (i == 1 && !slow && n > 0) back_ -= static_cast<size_t>(n);
      if (n <= 0 || send(both[1 - i].fd, bytes, static_cast<size_t>(n), MSG_NOSIGNAL) != n) return false;
    }
    return true;
  }

  const int to_;
  const std::chrono::milliseconds late_;
  size_t back_;
  const std::chrono::milliseconds pace_;
  std::atomic<bool> over_{false};
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::thread thread_;
};

}  // namespace anabranch::ps
