#include "rendezvous/hub.h"

#include <algorithm>

namespace anabranch::rendezvous {
namespace {

constexpr size_t kMostMembers = 4096;

rpc::MessageRef texts(rpc::Verb verb, const std::vector<std::string>& given) {
  auto m = std::make_shared<rpc::Message>(verb);
  m->header().incarnation = 1;
  for (const auto& text : given) m->add_text(text);
  return m;
}

rpc::MessageRef refusal(ErrorKind kind, const std::string& why) {
  auto m = rpc::Message::error(rpc::Verb::kHello, Error(kind, why));
  m->header().incarnation = 1;  // an answer: a retry would not help
  return m;
}

}  // namespace

Hub::Hub(rpc::Transport& transport, const std::string& endpoint, rpc::Milliseconds deadline)
    : deadline_(deadline), listener_(transport.listen(endpoint, [this](const rpc::MessageRef& m, rpc::Answer answer) {
        handle(m, std::move(answer));
      })) {}

Hub::~Hub() {
  Answers out;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [group, meeting] : meetings_) {
      end(meeting, "rank 0 has left the group", &out);
      for (rpc::Answer& a : meeting.waiting) {
        if (a) out.emplace_back(std::move(a), refusal(ErrorKind::kUnavailable, meeting.reason));
      }
    }
  }
  for (auto& [to, what] : out) to(what);
}

void Hub::handle(const rpc::MessageRef& request, rpc::Answer answer) {
  Answers out;
  {
    const std::lock_guard lock(mutex_);
    const rpc::Header& h = request->header();
    const auto at = meetings_.find(h.round);
    if (h.verb == rpc::Verb::kHello) {
      come(*request, std::move(answer), &out);
    } else if (h.verb == rpc::Verb::kComplete && at != meetings_.end()) {
      leave(*request, std::move(answer), &out);
    } else if (h.verb == rpc::Verb::kBeat && at != meetings_.end()) {
      Meeting& m = at->second;
      if (m.reason.empty()) {
        m.watching.push_back(std::move(answer));
      } else {
        out.emplace_back(std::move(answer), texts(h.verb, {m.reason}));
      }
    } else {
      out.emplace_back(std::move(answer),
                       refusal(ErrorKind::kInvalidArgument,
                               fmt::format("{} is nothing that is asked here", rpc::verb_name(h.verb))));
    }
  }
  for (auto& [to, what] : out) to(what);
}

void Hub::come(const rpc::Message& m, rpc::Answer answer, Answers* out) {
  const auto refuse = [&](const std::string& why) {
    out->emplace_back(std::move(answer), refusal(ErrorKind::kInvalidArgument, why));
  };
  const uint32_t rank = m.header().client;
  if (m.parts() != 2 || m.part(0).kind != rpc::PartKind::kText || m.part(1).kind != rpc::PartKind::kText) {
    return refuse("a process comes with the members of its group and its bytes");
  }
  const std::string members(m.text(0));
  const auto size = static_cast<size_t>(std::count(members.begin(), members.end(), ',')) + 1;
  if (size > kMostMembers || rank >= size) return refuse(fmt::format("rank {} of {} processes", rank, size));
  Meeting& meeting = meetings_[m.header().round];
  if (meeting.met && meeting.reason.empty()) end(meeting, fmt::format("rank {} has restarted", rank), out);
  if (meeting.number == 0 || !meeting.reason.empty()) {
    meeting = Meeting();
    meeting.number = ++meetings_begun_;
    meeting.members = members;
    meeting.given.resize(size);
    meeting.waiting.resize(size);
    timer_.after(deadline_, [this, group = m.header().round, number = meeting.number] { too_late(group, number); });
  }
  if (meeting.members != members) {
    return refuse(fmt::format("rank {} belongs to a group of {}, the first that came to one of {}", rank, members,
                              meeting.members));
  }
  if (meeting.waiting[rank]) return refuse(fmt::format("there is a process of rank {} already", rank));
  meeting.given[rank] = m.text(1);
  meeting.waiting[rank] = std::move(answer);
  if (!std::all_of(meeting.waiting.begin(), meeting.waiting.end(), [](const rpc::Answer& a) { return a != nullptr; }))
    return;
  meeting.met = true;
  const rpc::MessageRef all = texts(rpc::Verb::kHello, meeting.given);
  for (rpc::Answer& a : meeting.waiting) out->emplace_back(std::move(a), all);
}

void Hub::leave(const rpc::Message& m, rpc::Answer answer, Answers* out) {
  Meeting& meeting = meetings_[m.header().round];
  if (m.parts() == 1 && m.part(0).kind == rpc::PartKind::kText) {
    end(meeting, std::string(m.text(0)), out);
    out->emplace_back(std::move(answer), texts(rpc::Verb::kComplete, {meeting.reason}));
    return;
  }
  if (m.header().client >= meeting.given.size()) {
    const auto why = fmt::format("rank {} of {} processes", m.header().client, meeting.given.size());
    return out->emplace_back(std::move(answer), refusal(ErrorKind::kInvalidArgument, why)), void();
  }
  meeting.left.insert(m.header().client);
  meeting.leaving.push_back(std::move(answer));
  if (meeting.left.size() < meeting.given.size()) return;
  end(meeting, "all processes are done", out);
}

void Hub::end(Meeting& meeting, const std::string& why, Answers* out) {
  if (!meeting.reason.empty()) return;
  meeting.reason = why;
  const rpc::MessageRef told = texts(rpc::Verb::kBeat, {why});
  for (auto* list : {&meeting.watching, &meeting.leaving}) {
    for (rpc::Answer& a : *list) out->emplace_back(std::move(a), told);
    list->clear();
  }
}

void Hub::too_late(uint64_t group, uint64_t number) {
  std::vector<rpc::Answer> waiting;
  std::string missing;
  {
    const std::lock_guard lock(mutex_);
    Meeting& m = meetings_[group];
    if (m.number != number || m.met) return;
    for (size_t r = 0; r < m.waiting.size(); ++r) {
      if (!m.waiting[r]) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", r);
    }
    waiting.swap(m.waiting);
    m = Meeting();
  }
  const rpc::MessageRef told = refusal(
      ErrorKind::kUnavailable, fmt::format("rank {} of the group has not come for {:.0f} s (FLAGS_rpc_deadline)",
                                           missing, std::chrono::duration<double>(deadline_).count()));
  for (rpc::Answer& a : waiting) {
    if (a) a(told);
  }
}

}  // namespace anabranch::rendezvous
