// comm/: groups of processes, and their messages outside of steps.
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind_comm.h"
#include "comm/group.h"
#include "rendezvous/join.h"

namespace anabranch::python {
namespace {

std::vector<nb::bytes> gather(int ring, const nb::bytes& mine) {
  std::vector<size_t> sizes;
  std::vector<char> all;
  {
    const std::string_view given(mine.c_str(), mine.size());
    const Unlocked unlocked;
    comm::ring(ring)->call([&](comm::Peers& peers) {
      comm::Collective c;
      const uint64_t size = given.size();
      c.agree(peers, comm::What(comm::CollectiveKind::kAllGatherRows, DType::kUInt8, "bytes"), &size, sizeof(size));
      size_t sum = 0;
      for (int r = 0; r < peers.size(); ++r) {
        uint64_t bytes = 0;
        std::memcpy(&bytes, c.note(r), sizeof(bytes));
        AB_CHECK(bytes < (uint64_t{1} << 40), Internal, "{} gives {} bytes", peers.name(r), bytes);
        sum += sizes.emplace_back(bytes);
      }
      all.resize(sum);
      c.gather(peers, given.data(), all.data(), sizes, 3);
    });
  }
  std::vector<nb::bytes> out;
  size_t at = 0;
  for (const size_t size : sizes) {
    out.emplace_back(all.data() + at, size);
    at += size;
  }
  return out;
}

std::vector<nb::bytes> exchange(int ring, const std::vector<nb::bytes>& parts) {
  std::vector<std::string_view> views;
  for (const auto& part : parts) views.emplace_back(part.c_str(), part.size());
  std::vector<std::string> given;
  {
    const Unlocked unlocked;
    comm::ring(ring)->call([&](comm::Peers& peers) { given = comm::Collective().exchange(peers, views); });
  }
  std::vector<nb::bytes> out;
  for (const auto& part : given) out.emplace_back(part.data(), part.size());
  return out;
}

}  // namespace

void bind_comm(nb::module_& m) {
  m.def("comm_join", [](int ring, int rank, const std::vector<std::string>& endpoints) {
    const Unlocked unlocked;
    rendezvous::join_ring({.ring = ring, .rank = rank, .endpoints = endpoints});
  });
  m.def("comm_joined", [](int ring) { return comm::find_ring(ring) != nullptr; });
  m.def("comm_gather", &gather, nb::arg("ring"), nb::arg("mine"));
  m.def("comm_exchange", &exchange, nb::arg("ring"), nb::arg("parts"));
  m.def("comm_leave", [](int64_t within_ms) {
    const Unlocked unlocked;
    rendezvous::leave_rings(rpc::Milliseconds(within_ms));
  });
}

}  // namespace anabranch::python
