#include "audit.h"

#include <iterator>

namespace anabranch::simdevice {
namespace {

bool known(const Access& access, const Clock& clock) {
  return access.queue < 0 || clock.of(access.queue) >= access.tick;
}

Access unknown_of(const std::vector<Access>& all, const Clock& clock) {
  for (const Access& access : all) {
    if (!known(access, clock)) return access;
  }
  return {};
}

// For one queue the last access suffices: a clock that includes it includes the earlier ones.
void note(std::vector<Access>& all, const Access& now) {
  for (Access& access : all) {
    if (access.queue == now.queue) {
      access = now;
      return;
    }
  }
  all.push_back(now);
}

}  // namespace

void Audit::split(size_t at) {
  auto cell = cells_.upper_bound(at);
  if (cell == cells_.begin()) return;
  --cell;
  if (cell->first == at || cell->second.end <= at) return;
  Cell after = cell->second;
  cell->second.end = at;
  cells_.emplace_hint(std::next(cell), at, std::move(after));
}

// Afterwards cells cover [begin, end) without gaps, and none extends beyond it.
void Audit::cover(size_t begin, size_t end) {
  split(begin);
  split(end);
  size_t at = begin;
  for (auto cell = cells_.lower_bound(begin); at < end; ++cell) {
    const size_t next = cell == cells_.end() || cell->first > end ? end : cell->first;
    if (at < next) {
      Cell fresh;
      fresh.end = next;
      cell = cells_.emplace_hint(cell, at, std::move(fresh));
    }
    at = cell->second.end;
  }
}

Access Audit::touch(size_t begin, size_t end, ab_access how, const Access& now, const Clock& clock) {
  if (begin == end) return {};
  cover(begin, end);
  const auto first = cells_.lower_bound(begin), last = cells_.lower_bound(end);
  const bool writes = how & AB_WRITE, sums = how & AB_ACCUMULATE;
  Access found;
  for (auto cell = first; cell != last && found.queue < 0; ++cell) {
    if (!known(cell->second.write, clock)) found = cell->second.write;
    if (found.queue < 0 && (writes || sums)) found = unknown_of(cell->second.reads, clock);
    if (found.queue < 0 && !sums) found = unknown_of(cell->second.sums, clock);
  }
  if (writes) {  // it is ordered after all earlier accesses, and replaces them
    cells_.erase(first, last);
    Cell cell;
    cell.end = end;
    cell.write = now;
    cells_.emplace(begin, std::move(cell));
    return found;
  }
  for (auto cell = first; cell != last; ++cell) note(sums ? cell->second.sums : cell->second.reads, now);
  return found;
}

Access Audit::unknown_to(const Clock& clock) const {
  for (const auto& [begin, cell] : cells_) {
    if (!known(cell.write, clock)) return cell.write;
    for (const auto* all : {&cell.reads, &cell.sums}) {
      const Access found = unknown_of(*all, clock);
      if (found.queue >= 0) return found;
    }
  }
  return {};
}

}  // namespace anabranch::simdevice
