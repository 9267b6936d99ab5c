#include "ps/table_copy.h"

#include <algorithm>
#include <cstring>

#include "sparse/growable_table.h"

namespace anabranch::ps {
namespace {

constexpr int64_t kPartBytes = 1 << 20;  // of rows, on average

MessageRef ask(const Remote& server, int64_t part, int64_t bits) {
  auto request = std::make_shared<Message>(Verb::kTable);
  const int64_t which[] = {part, bits};
  request->add_ids(server.number, which);
  MessageRef answer = server.link->ask(std::move(request), false);
  AB_CHECK(answer->parts() == 2 && answer->part(0).kind == PartKind::kTensor &&
               answer->part(1).kind == PartKind::kTensor && answer->part(0).bytes == sizeof(sparse::TableHeader),
           Unavailable, "the server at {} answers with no part of a table", server.link->endpoint());
  return answer;
}

sparse::TableHeader head_of(const Remote& server) {
  sparse::TableHeader head{};
  std::memcpy(&head, ask(server, 0, 0)->payload(0), sizeof(head));
  check_header(head, fmt::format("the table at the server {}", server.link->endpoint()));
  return head;
}

sparse::TableHeader head_of_all(const std::vector<Remote>& servers) {
  sparse::TableHeader all = head_of(servers.at(0));
  for (size_t s = 1; s < servers.size(); ++s) {
    const sparse::TableHeader one = head_of(servers[s]);
    AB_CHECK(
        one.width == all.width && one.rule() == all.rule(), ShapeMismatch,
        "servers disagree on a table: rows of {} numbers with the moments of {} at {}, of {} with those of {} at {}",
        all.width, rules::info_of(all.rule()).name, servers[0].link->endpoint(), one.width,
        rules::info_of(one.rule()).name, servers[s].link->endpoint());
    all.rows += one.rows;
    all.clock = std::max(all.clock, one.clock);
  }
  return all;
}

int64_t key_at(const char* row) {
  int64_t key = 0;
  std::memcpy(&key, row, sizeof(key));
  return key;
}

}  // namespace

void each_part(const Remote& server, const std::function<void(const sparse::TableHeader&, std::string_view)>& use) {
  const sparse::TableHeader head = head_of(server);
  const int bits = sparse::GrowableTable::bits_for(head.rows * static_cast<int64_t>(head.row_bytes()), kPartBytes);
  for (int64_t part = 0; part < int64_t{1} << bits; ++part) {
    const MessageRef answer = ask(server, part, bits);
    const size_t bytes = answer->part(1).bytes;
    AB_CHECK(bytes % head.row_bytes() == 0, Unavailable, "the server at {} answers with half a row",
             server.link->endpoint());
    use(head, {answer->payload(1), bytes});
  }
}

void save_table(const std::vector<Remote>& servers, const std::string& path, io::FileSet* files) {
  sparse::TableHeader head = head_of_all(servers);
  const size_t row_bytes = head.row_bytes();
  const int bits = sparse::GrowableTable::bits_for(head.rows * static_cast<int64_t>(row_bytes), kPartBytes);
  io::AtomicFile& file = files->add(path);
  const std::string_view begin(reinterpret_cast<const char*>(&head), sizeof(head));
  file.write(begin);
  head.rows = 0;  // servers may be training
  std::vector<const char*> rows;
  std::string sorted;
  for (int64_t part = 0; part < int64_t{1} << bits; ++part) {
    std::vector<MessageRef> answers;
    rows.clear();
    for (const Remote& server : servers) {
      answers.push_back(ask(server, part, bits));
      const char* data = answers.back()->payload(1);
      const size_t bytes = answers.back()->part(1).bytes;
      AB_CHECK(bytes % row_bytes == 0, Unavailable, "the server at {} answers with half a row",
               server.link->endpoint());
      for (size_t at = 0; at < bytes; at += row_bytes) rows.push_back(data + at);
    }
    std::sort(rows.begin(), rows.end(), [](const char* a, const char* b) { return key_at(a) < key_at(b); });
    sorted.clear();
    for (const char* row : rows) sorted.append(row, row_bytes);
    file.write(sorted);
    head.rows += static_cast<int64_t>(rows.size());
  }
  file.write_at_begin(begin);
}

}  // namespace anabranch::ps
