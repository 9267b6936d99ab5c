// Texts of the machine: why nothing can run, and what is left at the end.
#include "machine.h"

namespace anabranch::simdevice {

std::string Machine::standing() const {
  std::string text;
  for (const auto& queue : queues.all()) {
    if (queue->items.empty()) continue;
    const Item& item = queue->items.front();
    text += (text.empty() ? "" : "; ") + queue->text();
    if (item.kind == Item::Kind::kCollective) {
      text += said(" ", item.round->standing(), " (", *item.label, ")");
      if (!item.round->group->failure.empty()) text += ": " + item.round->group->failure;
    } else {
      text += item.kind == Item::Kind::kWait ? " waits for an event" : " has not been let run";
    }
  }
  return text.empty() ? "all queues are empty" : text;
}

std::string Machine::left() const {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() || what.empty() ? "" : ", ") + what; };
  for (const auto& memory : memories_) add(memory->left());
  add(pinned.left());
  const auto count = [&](const auto& handles) {
    if (!handles.all().empty()) add(said(handles.all().size(), " times ", handles.what()));
  };
  count(queues), count(events), count(kernels), count(libraries), count(graphs), count(comms.handles);
  return text;
}

}  // namespace anabranch::simdevice
