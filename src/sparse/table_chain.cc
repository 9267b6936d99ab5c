#include "sparse/table_chain.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "io/atomic_file.h"

namespace anabranch::sparse {
namespace {

uint64_t sum_of(const LinkSums& sums, bool whole) { return whole ? sums.whole : sums.changes; }

std::string run_of(const LinkPlace& p) { return fmt::format("{:016x}{:016x}", p.run[0], p.run[1]); }

}  // namespace

void check_follows(const LinkReader& before, const LinkReader& next) {
  const LinkPlace &a = before.place(), &b = next.place();
  AB_CHECK(next.name() == before.name(), InvalidArgument, "{} belongs to table {}, the link before it, {}, to table {}",
           next.path(), next.name(), before.path(), before.name());
  AB_CHECK(std::memcmp(a.run, b.run, sizeof(a.run)) == 0, InvalidArgument,
           "{} belongs to run {}, the link before it, {}, to run {}", next.path(), run_of(b), before.path(), run_of(a));
  AB_CHECK(!b.whole, InvalidArgument, "{} has all rows of its table and can only be the first link of a chain",
           next.path());
  AB_CHECK(b.previous == a.number, InvalidArgument, "{} is link {} of its run and follows link {}, got {} with link {}",
           next.path(), b.number, b.previous, before.path(), a.number);
  AB_CHECK(sum_of(b.previous_sums, a.whole) == before.checksum(), InvalidArgument,
           "{} follows a link {} with checksum {:x}, {} has {:x}", next.path(), b.previous,
           sum_of(b.previous_sums, a.whole), before.path(), before.checksum());
  const TableHeader &h = before.table(), &t = next.table();
  AB_CHECK(h.width == t.width && h.rule() == t.rule(), ShapeMismatch,
           "{} holds rows of {} numbers with the moments of {}, the link before it, {}, of {} with those of {}",
           next.path(), t.width, rules::info_of(t.rule()).name, before.path(), h.width, rules::info_of(h.rule()).name);
}

TableChain::TableChain(const std::vector<std::string>& paths, const LinkReader* after) {
  AB_CHECK(!paths.empty(), InvalidArgument, "a chain of a growable table has at least one link, got none");
  for (const auto& path : paths) {
    const LinkReader* before = links_.empty() ? after : &links_.back();
    links_.emplace_back(path);
    if (before) check_follows(*before, links_.back());
  }
  AB_CHECK(after || first().place().whole, InvalidArgument,
           "{} has only the rows that have changed since link {}: a chain starts with a link of all rows",
           first().path(), first().place().previous);
}

LinksWriter::LinksWriter(const std::string& name, LinkPlace place, const TableHeader& table, bool has_changes,
                         std::span<const int64_t> gone, io::AtomicFile* whole, io::AtomicFile* changes) {
  AB_CHECK(!changes || has_changes, NotFound, "the changes of table {} since link {} were not recorded", name,
           place.previous);
  place.whole = 0;
  if (changes) some_.emplace(changes, name, place, table, gone);
  place.whole = 1;
  if (whole) all_.emplace(whole, name, place, table, std::span<const int64_t>());
}

void LinksWriter::add(std::string_view all, std::string_view changed) {
  if (all_) all_->add_rows(all);
  if (some_) some_->add_rows(changed);
}

LinkSums LinksWriter::end() {
  LinkSums sums;
  if (some_) sums.changes = some_->end();
  if (all_) sums.whole = all_->end();
  return sums;
}

LinkSums write_links(GrowableTable::Cut* cut, LinkPlace place, io::AtomicFile* whole, io::AtomicFile* changes) {
  LinksWriter writer(cut->name(), place, cut->header(), cut->has_changes(), cut->gone(), whole, changes);
  constexpr size_t kWriteBytes = 1 << 20;
  CutRows rows;
  for (bool more = true; more;) {
    more = cut->next(&rows);
    if (more && rows.bytes() < kWriteBytes) continue;
    writer.add(rows.all, rows.changed);
    rows.all.clear();
    rows.changed.clear();
  }
  return writer.end();
}

uint64_t write_for_serving(const LinkReader& link, const LinkPlace& place, RowForm form, io::AtomicFile* file) {
  std::vector<int64_t> gone;
  const auto take_gone = [&](std::string_view keys) {
    const size_t before = gone.size();
    gone.resize(before + keys.size() / sizeof(int64_t));
    std::memcpy(gone.data() + before, keys.data(), keys.size());
  };
  const TableHeader table = header_of(GrowableTable::for_lookups(link.table()), false, 0, link.table().clock);
  const int64_t width = table.width;
  const size_t row_bytes = link.table().row_bytes();
  std::optional<LinkWriter> writer;
  const auto begun = [&]() -> LinkWriter& {
    return writer ? *writer : writer.emplace(file, link.name(), place, table, gone, form);
  };
  std::string out;
  link.each(take_gone, [&](std::string_view rows) {
    out.clear();
    for (size_t at = 0; at < rows.size(); at += row_bytes) encode_row(form, width, rows.data() + at, &out);
    begun().add_rows(out);
  });
  return begun().end();
}

// ---- tables from chains

void GrowableTable::load(const TableChain& chain, const std::function<bool(int64_t key)>& mine) {
  const TableHeader& h = chain.last().table();
  check_fits(h, chain.last().path());
  AB_CHECK(chain.first().place().whole, InvalidArgument, "{} does not have all rows of table {}", chain.first().path(),
           name_);
  GrowableTable fresh(name_, options_);
  if (!mine) fresh.reserve(chain.first().rows());
  for (const LinkReader& link : chain.links()) fresh.apply(link, mine);
  take(&fresh, h.clock);
}

void GrowableTable::record_since(uint64_t link) {
  check_not_image();
  for (Part& p : parts_) {
    const std::lock_guard held(p.lock);
    p.shard->record_changes();
  }
  since_ = link;
}

int64_t GrowableTable::changed_bytes() {
  uint64_t rows = 0, gone = 0;
  for (Part& p : parts_) {
    const std::lock_guard held(p.lock);
    p.shard->count_changes(&rows, &gone);
  }
  return static_cast<int64_t>(rows * header_of(options_, true, 0, 1).row_bytes() + gone * sizeof(int64_t));
}

void GrowableTable::apply(const LinkReader& link, const std::function<bool(int64_t key)>& mine) {
  if (own_) {
    begin_own(link.rows() + link.gone());
    return own_->put_changes(link, mine);
  }
  const size_t row_bytes = link.table().row_bytes();
  link.each(
      [&](std::string_view keys) {
        std::vector<int64_t> gone(keys.size() / sizeof(int64_t));
        std::memcpy(gone.data(), keys.data(), keys.size());
        remove(gone.data(), static_cast<int64_t>(gone.size()));
      },
      [&](std::string_view rows) {
        for (size_t at = 0; at < rows.size(); at += row_bytes) {
          put_row(rows.data() + at, link.table(), mine, link.path());
        }
      });
}

std::shared_ptr<GrowableTable> GrowableTable::open(const std::string& name, const TableChain& chain,
                                                   const std::function<bool(int64_t key)>& mine) {
  auto table = std::make_shared<GrowableTable>(name, options_of(chain.last().table()));
  table->load(chain, mine);
  return table;
}

}  // namespace anabranch::sparse
