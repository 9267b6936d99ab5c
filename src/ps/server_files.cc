// Queues of files on a server: the workers' requests, and the stored state.
#include <algorithm>
#include <initializer_list>

#include "ps/server.h"

namespace anabranch::ps {
namespace {

bool has_parts(const Message& m, std::initializer_list<PartKind> kinds) {
  if (m.parts() != static_cast<int>(kinds.size())) return false;
  int i = 0;
  return std::all_of(kinds.begin(), kinds.end(), [&](PartKind kind) { return m.part(i++).kind == kind; });
}

FileQueues::Holder holder_of(const Message& m) { return {m.header().client, m.header().incarnation}; }

}  // namespace

bool Server::is_about_files(Verb verb) {
  return verb == Verb::kOfferFiles || verb == Verb::kTakeFile || verb == Verb::kEndFile;
}

MessageRef Server::files(const MessageRef& request) {
  const Header& h = request->header();
  AB_CHECK(h.sequence > 0, InvalidArgument, "a request about files of trainer {} has no number", h.client);
  switch (h.verb) {
    case Verb::kOfferFiles: return offer_files(request);
    case Verb::kTakeFile: return take_file(request);
    default: return end_file(request);
  }
}

MessageRef Server::offer_files(const MessageRef& request) {
  AB_CHECK(has_parts(*request, {PartKind::kText, PartKind::kText}), InvalidArgument,
           "trainer {} offers files without a name of their queue, or without their names", request->header().client);
  if (!files_.knows(request->text(0), request->text(1))) {
    keep(std::span(&request, 1));
    files_.add(request->text(0), request->text(1));
  }
  return files_offered();
}

// The interval at which a worker that holds a file must report that it is alive.
MessageRef Server::files_offered() const {
  auto out = std::make_shared<Message>(Verb::kOfferFiles);
  const auto every = static_cast<uint32_t>(std::max<int64_t>(1, options_.file_lease.count() / 6));
  out->add_needed(std::span(&every, 1));
  return out;
}

// In sync training a worker without a file must not wait for files that others hold, because they wait for its
// gradients. Its pass ends, and a file that returns then goes to the restarted worker.
MessageRef Server::take_file(const MessageRef& request) {
  AB_CHECK(has_parts(*request, {PartKind::kText}), InvalidArgument,
           "trainer {} takes a file without a name of its queue", request->header().client);
  const std::string_view key = request->text(0);
  const TimePoint now = options_.clock->now();
  const int64_t file = files_.next(key, now, [this](uint32_t trainer) {
    return trainer < trainers_.size() ? trainers_[trainer].heard : TimePoint{};
  });
  if (file < 0) {
    auto none = std::make_shared<Message>(Verb::kTakeFile);
    none->header().flags = files_.left(key) == 0 || options_.mode == Mode::kSync ? Header::kOver : 0;
    return none;
  }
  const auto decided = request->clone();
  decided->add_ids(0, std::span(&file, 1));
  const MessageRef record = decided;
  keep(std::span(&record, 1));
  return lease_file(*record);
}

MessageRef Server::lease_file(const Message& record) {
  const std::string_view key = record.text(0);
  const int64_t file = record.ids(1)[0];
  files_.lease(key, file, holder_of(record), options_.clock->now());
  auto out = std::make_shared<Message>(Verb::kTakeFile);
  out->header().round = static_cast<uint64_t>(files_.left(key));
  out->add_ids(0, std::span(&file, 1));
  out->add_text(files_.name(key, file));
  return out;
}

MessageRef Server::end_file(const MessageRef& request) {
  AB_CHECK(has_parts(*request, {PartKind::kText, PartKind::kIds}) && request->ids(1).size() == 1, InvalidArgument,
           "trainer {} ends a file without a name of its queue, or without its number", request->header().client);
  if (!files_.holds(request->text(0), request->ids(1)[0], holder_of(*request))) {
    files_.count_late();
    return std::make_shared<Message>(Verb::kEndFile);
  }
  keep(std::span(&request, 1));
  return file_ended(*request);
}

MessageRef Server::file_ended(const Message& record) {
  files_.end(record.text(0), record.ids(1)[0], record.header().flags & Header::kTrained);
  auto out = std::make_shared<Message>(Verb::kEndFile);
  out->header().flags = Header::kTrained;
  return out;
}

// The stored decisions were made before.
MessageRef Server::replay_files(const Message& record) {
  switch (record.header().verb) {
    case Verb::kOfferFiles: files_.add(record.text(0), record.text(1)); return files_offered();
    case Verb::kTakeFile: return lease_file(record);
    default: return file_ended(record);
  }
}

std::string Server::tell_files() const {
  const FileCounts& c = files_.counts();
  return fmt::format("files_taken {}\nfiles_done {}\nfiles_returned {}\nfiles_late {}\n", c.taken, c.done, c.returned,
                     c.late);
}

}  // namespace anabranch::ps
