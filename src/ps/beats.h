// Says to a server now and then that a trainer is alive, whatever else it does.
#pragma once
#include <memory>

#include "ps/link.h"

namespace anabranch::ps {

class Beats : public std::enable_shared_from_this<Beats> {
 public:
  Beats(std::shared_ptr<Link> link, std::shared_ptr<Timer> timer, Milliseconds every)
      : link_(std::move(link)), timer_(std::move(timer)), every_(every) {}

  // Goes on until this is gone. An answer that does not come is no reason to say less.
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

}  // namespace anabranch::ps
