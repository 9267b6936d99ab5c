// Tells a server regularly that a worker is alive, during any other work.
#pragma once
#include <memory>

#include "rpc/link.h"

namespace anabranch::rpc {

class Beats : public std::enable_shared_from_this<Beats> {
 public:
  Beats(std::shared_ptr<Link> link, std::shared_ptr<Timer> timer, Milliseconds every)
      : link_(std::move(link)), timer_(std::move(timer)), every_(every) {}

  // Runs until this is destroyed. A missing answer does not change the interval.
  void begin() {
    timer_->after(every_, [weak = weak_from_this()] {
      const std::shared_ptr<Beats> self = weak.lock();
      if (!self) return;
      self->link_->send(std::make_shared<Message>(Verb::kBeat), false, [](const MessageRef&) {});
      self->begin();
    });
  }

 private:
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<Timer> timer_;
  const Milliseconds every_;
};

}  // namespace anabranch::rpc
