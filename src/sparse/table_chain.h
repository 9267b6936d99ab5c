// Chains of links: a whole link and those after it, which together are a table of one moment.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sparse/growable_table.h"
#include "sparse/table_link.h"

namespace anabranch::sparse {

// A chain that has been checked: all links are whole, of one table and one run, and in order; none is missing between
// them.
class TableChain {
 public:
  // From the whole link on, or from the link after `after` on. InvalidArgument names the first link that is wrong.
  explicit TableChain(const std::vector<std::string>& paths, const LinkReader* after = nullptr);

  const LinkReader& first() const { return links_.front(); }
  const LinkReader& last() const { return links_.back(); }
  const std::deque<LinkReader>& links() const { return links_; }

 private:
  std::deque<LinkReader> links_;
};

// InvalidArgument unless `next` is the link after `before`.
void check_follows(const LinkReader& before, const LinkReader& next);

// Writes the links of one moment: all rows and the changes, each of them if its file is not null.
class LinksWriter {
 public:
  // NotFound: the changes were not recorded.
  LinksWriter(const std::string& name, LinkPlace place, const TableHeader& table, bool has_changes,
              std::span<const int64_t> gone, io::AtomicFile* whole, io::AtomicFile* changes);
  void add(std::string_view all, std::string_view changed);
  LinkSums end();

 private:
  std::optional<LinkWriter> all_, some_;
};

// Writes the rows and the changes of a cut, each of them if its file is not null. The cut must still be ended, when the
// files stand under their names.
LinkSums write_links(GrowableTable::Cut* cut, LinkPlace place, io::AtomicFile* whole, io::AtomicFile* changes);

// Writes a link again for serving, at another place, with rows in `form`. Returns its checksum.
uint64_t write_for_serving(const LinkReader& link, const LinkPlace& place, RowForm form, io::AtomicFile* file);

}  // namespace anabranch::sparse
