#include "ps/link_copy.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace anabranch::ps {
namespace {

std::shared_ptr<Message> request(const Remote& server, LinkRequest what, int64_t token, int64_t number) {
  auto made = std::make_shared<Message>(Verb::kTable);
  const int64_t numbers[] = {static_cast<int64_t>(what), token, number};
  made->add_ids(server.number, numbers);
  return made;
}

void check(const Remote& server, bool good) {
  AB_CHECK(good, Unavailable, "the server at {} does not answer with a link of a table", server.link->endpoint());
}

std::string_view bytes_of(const Message& m, int part) {
  return {m.payload(part), static_cast<size_t>(m.part(part).bytes)};
}

bool has_kinds(const Message& m, std::initializer_list<PartKind> kinds) {
  if (m.parts() != static_cast<int>(kinds.size())) return false;
  int i = 0;
  return std::all_of(kinds.begin(), kinds.end(), [&](PartKind kind) { return m.part(i++).kind == kind; });
}

}  // namespace

std::vector<uint64_t> recorded_since(const std::vector<Remote>& servers) {
  std::vector<uint64_t> out;
  for (const Remote& server : servers) {
    const MessageRef answer = server.link->ask(request(server, LinkRequest::kState, 0, 0), false);
    check(server, has_kinds(*answer, {PartKind::kIds}) && answer->ids(0).size() == 1);
    out.push_back(static_cast<uint64_t>(answer->ids(0)[0]));
  }
  return out;
}

MessageRef ServerCut::ask(const Remote& server, LinkRequest what, int64_t number) const {
  return server.link->ask(request(server, what, token_, number), false);
}

ServerCut::ServerCut(std::vector<Remote> servers, bool whole) : servers_(std::move(servers)) {
  std::random_device draw;
  token_ = static_cast<int64_t>(uint64_t{draw()} << 31 | draw());
  for (const Remote& server : servers_) {
    const MessageRef answer = ask(server, LinkRequest::kBegin, whole);
    check(server, has_kinds(*answer, {PartKind::kTensor, PartKind::kIds, PartKind::kIds}) &&
                      answer->part(0).bytes == sizeof(sparse::TableHeader) && answer->ids(1).size() == 1);
    sparse::TableHeader head{};
    std::memcpy(&head, answer->payload(0), sizeof(head));
    check_header(head, fmt::format("the table at the server {}", server.link->endpoint()));
    const int64_t clock = std::max(head.clock, header_.clock);
    AB_CHECK(header_.width == 0 || head.row_bytes() == header_.row_bytes(), ShapeMismatch,
             "servers disagree on a table: rows of {} bytes at {}, of {} at {}", header_.row_bytes(),
             servers_[0].link->endpoint(), head.row_bytes(), server.link->endpoint());
    if (header_.width == 0) header_ = head;
    header_.clock = clock;
    has_changes_ &= answer->ids(1)[0] != 0;
    gone_.insert(gone_.end(), answer->ids(2).begin(), answer->ids(2).end());
  }
  std::sort(gone_.begin(), gone_.end());
}

void ServerCut::end(uint64_t link) {
  for (const Remote& server : servers_) ask(server, LinkRequest::kEnd, static_cast<int64_t>(link));
}

sparse::LinkSums ServerCut::write(const std::string& name, sparse::LinkPlace place, io::AtomicFile* whole,
                                  io::AtomicFile* changes) {
  sparse::LinksWriter writer(name, place, header_, has_changes_, gone_, whole, changes);
  for (const Remote& server : servers_) {
    bool more = true;
    for (int64_t part = 0; more; ++part) {
      const MessageRef answer = ask(server, LinkRequest::kNext, part);
      check(server, has_kinds(*answer, {PartKind::kTensor, PartKind::kTensor, PartKind::kIds}) &&
                        answer->ids(2).size() == 1 && answer->part(0).bytes % header_.row_bytes() == 0 &&
                        answer->part(1).bytes % header_.row_bytes() == 0);
      writer.add(bytes_of(*answer, 0), bytes_of(*answer, 1));
      more = answer->ids(2)[0] != 0;
    }
  }
  return writer.end();
}

}  // namespace anabranch::ps
