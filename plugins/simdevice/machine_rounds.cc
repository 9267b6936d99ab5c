// Runs collectives: all parts of this process at once.
#include "machine.h"
#include "put.h"

namespace anabranch::simdevice {

// The parts of this process, of a collective in which other processes have parts, too. They stay in their queues.
void Machine::begin_round(Lock& lock, Round& round) {
  std::vector<std::unique_ptr<Running>> parts(round.parts.size());
  Item* first = nullptr;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (!round.parts[rank].queue) continue;
    ab_queue& queue = *round.parts[rank].queue;
    Item& item = queue.items.front();
    queue.clock.join(item.host);
    queue.clock.advance(queue.id);
    parts[rank] = std::make_unique<Running>(*this, queue, item);
    if (!first) first = &item;
  }
  work(lock, *first, [&] { begin_parts(round, parts); });
  while (!parts.empty()) parts.pop_back();  // the innermost first
  round.begun = true;
}

// All ranks' parts of a collective at once, as far as they are of this process. Afterwards the queue of a rank that was
// given something knows what those that gave it knew before; that others are through with their part, it does not, as
// with real ones.
void Machine::run_round(Lock& lock, Round& round) {
  const size_t ranks = round.parts.size();
  std::vector<Item> items(ranks);
  std::vector<std::unique_ptr<Running>> parts(ranks);
  std::vector<Clock> before(ranks);
  Item* first = nullptr;
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (!round.parts[rank].queue) continue;
    ab_queue& queue = *round.parts[rank].queue;
    items[rank] = std::move(queue.items.front());
    queue.items.pop_front();
    queue.clock.join(items[rank].host);
    before[rank] = queue.clock;
    queue.clock.advance(queue.id);
    queue.busy = true;
    parts[rank] = std::make_unique<Running>(*this, queue, items[rank]);
    if (!first) first = &items[rank];
  }
  work(lock, *first, [&] { run_parts(round, parts); });
  while (!parts.empty()) parts.pop_back();  // the innermost first
  for (size_t to = 0; to < ranks; ++to) {
    if (!round.parts[to].queue) continue;
    ab_queue& queue = *round.parts[to].queue;
    queue.busy = false;
    for (size_t from = 0; from < ranks; ++from) {
      if (round.gives(static_cast<int>(from), static_cast<int>(to))) queue.clock.join(before[from]);
    }
  }
  round.group->open.erase(round.number);
  ++round.group->next_round;
}

}  // namespace anabranch::simdevice
