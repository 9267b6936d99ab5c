#include "engine/served_links.h"

#include <algorithm>

#include "base/error.h"
#include "engine/served_bytes.h"
#include "ps/link_copy.h"

namespace anabranch {
namespace {

constexpr size_t kPartBytes = 1 << 20;
constexpr std::chrono::seconds kSilent{60};

void add_number(uint32_t variable, int64_t number, rpc::Message* into) {
  into->add_ids(variable, std::span(&number, 1));
}

}  // namespace

void ServedLinks::handle(uint32_t variable, const Table& table, std::span<const int64_t> request, rpc::Message* into) {
  AB_CHECK(request.size() == 3, InvalidArgument, "a request for a link of a table has 3 numbers, got {}",
           request.size());
  const std::lock_guard lock(mutex_);
  const int64_t token = request[1], number = request[2];
  switch (static_cast<ps::LinkRequest>(request[0])) {
    case ps::LinkRequest::kState: add_number(variable, static_cast<int64_t>(table->recorded_since()), into); return;
    case ps::LinkRequest::kBegin: begin(variable, table, token, number != 0, into); return;
    case ps::LinkRequest::kNext: next(variable, &find(variable, token), number, into); return;
    case ps::LinkRequest::kEnd: {
      const auto at = open_.find(variable);
      if (at == open_.end() && table->recorded_since() == static_cast<uint64_t>(number)) return;  // requested again
      Open& open = find(variable, token);
      AB_CHECK(!open.more, InvalidArgument, "a link of table {} is ended before its last part", table->name());
      open.cut->end(static_cast<uint64_t>(number));
      open_.erase(variable);
      return;
    }
  }
  AB_THROW(InvalidArgument, "request {} for a link of table {} is unknown", request[0], table->name());
}

ServedLinks::Open& ServedLinks::find(uint32_t variable, int64_t token) {
  const auto at = open_.find(variable);
  AB_CHECK(at != open_.end() && at->second.token == token, NotFound,
           "the server has dropped this save of variable {}: it was restarted, or another save has begun", variable);
  at->second.heard = Clock::now();
  return at->second;
}

void ServedLinks::begin(uint32_t variable, const Table& table, int64_t token, bool whole, rpc::Message* into) {
  const auto at = open_.find(variable);
  if (at == open_.end() || at->second.token != token) {
    open_.erase(variable);
    Open made;
    made.token = token;
    made.cut = std::make_unique<sparse::GrowableTable::Cut>(table, kSliceBytes,
                                                            whole ? sparse::CutKind::kBoth : sparse::CutKind::kChanges);
    open_[variable] = std::move(made);
  }
  Open& open = find(variable, token);
  AB_CHECK(open.part < 0, InvalidArgument, "a save of table {} starts twice", table->name());
  const sparse::TableHeader head = open.cut->header();
  add_bytes(variable, {reinterpret_cast<const char*>(&head), sizeof(head)}, into);
  add_number(variable, open.cut->has_changes(), into);
  into->add_ids(variable, open.cut->gone());
}

void ServedLinks::next(uint32_t variable, Open* open, int64_t part, rpc::Message* into) {
  AB_CHECK(part == open->part || part == open->part + 1, InvalidArgument,
           "part {} of a link of variable {} is requested after part {}", part, variable, open->part);
  if (part != open->part) {
    open->rows = {};
    while (open->more && open->rows.bytes() < kPartBytes) open->more = open->cut->next(&open->rows);
    open->part = part;
  }
  add_bytes(variable, open->rows.all, into);
  add_bytes(variable, open->rows.changed, into);
  add_number(variable, open->more, into);
}

void ServedLinks::drop_silent() {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  std::erase_if(open_, [&](const auto& entry) { return now - entry.second.heard > kSilent; });
}

}  // namespace anabranch
