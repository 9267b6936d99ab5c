// The files of the links of one moment.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "io/atomic_file.h"
#include "sparse/table_chain.h"

namespace anabranch::python {

// write(whole, changes) writes them; an empty path: not this one. (checksum of the changes, of all rows)
template <class Write>
std::pair<uint64_t, uint64_t> write_link_files(const std::string& changes, const std::string& whole, Write&& write) {
  std::optional<io::AtomicFile> some, all;
  if (!changes.empty()) some.emplace(changes);
  if (!whole.empty()) all.emplace(whole);
  const sparse::LinkSums sums = write(all ? &*all : nullptr, some ? &*some : nullptr);
  if (some) some->commit();
  if (all) all->commit();
  return {sums.changes, sums.whole};
}

}  // namespace anabranch::python
