// Traffic of each table on a server: counted during the work, and returned on request.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "ps/store.h"

namespace anabranch::ps {

struct Traffic {
  std::atomic<int64_t> pulls{0}, rows_pulled{0}, pull_us{0};
  std::atomic<int64_t> pushes{0}, rows_pushed{0}, push_us{0};
  // Pushes by the number of updates the worker had not seen: none, 1, 2 to 3, 4 to 7 and so on.
  std::array<std::atomic<int64_t>, 20> late{};

  void pushed(int64_t rows, int64_t missed) {
    ++pushes;
    rows_pushed += rows;
    const auto place = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(missed)));
    ++late[place < late.size() ? place : late.size() - 1];
  }
  // One line: numbers, first that of the variable, followed by the name.
  std::string line(uint32_t variable, const std::string& name, const Extent& e) const {
    std::string out =
        fmt::format("table {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} ", variable, e.rows, e.bytes,
                    pulls.load(), rows_pulled.load(), pull_us.load(), pushes.load(), rows_pushed.load(), push_us.load(),
                    e.found, e.missed, e.created, e.waiting, e.refused, e.evicted, e.expired, e.shrunk);
    for (size_t i = 0; i < late.size(); ++i) out += fmt::format("{}{}", i ? "," : "", late[i].load());
    return out + " " + name + "\n";
  }
};

}  // namespace anabranch::ps
