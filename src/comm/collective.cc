#include "comm/collective.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace anabranch::comm {
namespace {

constexpr int64_t kBlock = 2048;                  // numbers that are added at a time, in the cache
constexpr size_t kDirectBytes = size_t{1} << 16;  // below it a second meeting costs more than the bytes it saves
constexpr int kData = 1, kResult = 2;             // phases

struct Part {
  int64_t begin, end;
};
Part part_of(int64_t elems, int rank, int size) { return {elems * rank / size, elems * (rank + 1) / size}; }

template <class Fn> void for_others(const Peers& peers, Fn&& fn) {
  for (int r = 0; r < peers.size(); ++r) {
    if (r != peers.rank()) fn(r);
  }
}

// Calls fn(memory, bytes after `begin`, numbers) for the parts of `n` consecutive numbers, from `begin` on, in each
// range.
template <class Fn> void over(std::span<const Chunk> chunks, int64_t begin, int64_t n, size_t size, Fn&& fn) {
  int64_t at = 0;
  for (const Chunk& p : chunks) {
    const int64_t from = std::max(begin, at), to = std::min(begin + n, at + p.elems);
    if (from < to) fn(static_cast<char*>(p.data) + (from - at) * size, (from - begin) * size, to - from);
    at += p.elems;
  }
}

}  // namespace

void Collective::use_theirs(const Peers& peers, const char* mine) {
  for (int r = 0; r < peers.size(); ++r) from_[r] = r == peers.rank() ? mine : theirs_[r].memory();
}

// *to = the combination of the numbers `skip` bytes after from_, in the order of ranks. One of them may be `to`.
void Collective::add_up(Combine how, DType dtype, size_t skip, char* to, int64_t elems) const {
  const size_t size = dtype_size(dtype);
  alignas(64) char block[kBlock * sizeof(double)];
  for (int64_t b = 0; b < elems; b += kBlock) {
    const int64_t n = std::min(kBlock, elems - b);
    for (size_t r = 0; r < from_.size(); ++r) {
      const char* from = from_[r] + skip + b * size;
      if (r == 0) {
        std::memcpy(block, from, n * size);
      } else {
        combine(how, dtype, block, from, n);
      }
    }
    std::memcpy(to + b * size, block, n * size);
  }
}

// Every process sends everything to all others: one meeting.
void Collective::direct(Peers& peers, Combine how, DType dtype, const Chunk& chunk) {
  const size_t bytes = chunk.elems * dtype_size(dtype);
  Region& mine = mine_.over(peers.wire(), chunk.data, bytes);
  for_others(peers, [&](int r) {
    peers.receive(theirs_[r].room(peers.wire(), bytes), r, kData, 0, bytes);
    peers.send(mine, r, kData, 0, bytes);
  });
  for_others(peers, [&](int r) { peers.wait_received(theirs_[r].region(), r); });
  for_others(peers, [&](int r) { peers.wait_sent(mine, r); });
  char* data = static_cast<char*>(chunk.data);
  use_theirs(peers, data);
  add_up(how, dtype, 0, data, chunk.elems);
}

// Each process adds up its part of the numbers and sends it to the others: each byte travels twice, for any number of
// processes.
void Collective::by_owners(Peers& peers, Combine how, DType dtype, const Chunk& chunk) {
  const size_t size = dtype_size(dtype), bytes = chunk.elems * size;
  char* data = static_cast<char*>(chunk.data);
  const auto [begin, end] = part_of(chunk.elems, peers.rank(), peers.size());
  const size_t own = (end - begin) * size;
  Region& mine = mine_.over(peers.wire(), chunk.data, bytes);
  for_others(peers, [&](int r) {
    const Part part = part_of(chunk.elems, r, peers.size());
    peers.receive(theirs_[r].room(peers.wire(), own), r, kData, 0, own);
    peers.send(mine, r, kData, part.begin * size, (part.end - part.begin) * size);
  });
  for_others(peers, [&](int r) { peers.wait_received(theirs_[r].region(), r); });
  for_others(peers, [&](int r) { peers.wait_sent(mine, r); });
  use_theirs(peers, data + begin * size);
  add_up(how, dtype, 0, data + begin * size, end - begin);
  for_others(peers, [&](int r) {
    const Part part = part_of(chunk.elems, r, peers.size());
    peers.receive(into_[r].over(peers.wire(), chunk.data, bytes), r, kResult, part.begin * size,
                  (part.end - part.begin) * size);
    peers.send(mine, r, kResult, begin * size, own);
  });
  for_others(peers, [&](int r) { peers.wait_received(into_[r].region(), r); });
  for_others(peers, [&](int r) { peers.wait_sent(mine, r); });
}

// Every process adds up what all have written, if there are two. If there are more, each adds up its part, and the
// others read it from there.
void Collective::on_board(Peers& peers, Combine how, DType dtype, std::span<const Chunk> chunks) {
  const size_t size = dtype_size(dtype);
  const auto block = static_cast<int64_t>(Board::kSide / size);
  Board& board = *peers.board();
  int64_t elems = 0;
  for (const Chunk& p : chunks) elems += p.elems;
  for (int64_t b = 0; b < elems; b += block) {
    const int64_t n = std::min(block, elems - b);
    over(chunks, b, n, size, [&](char* data, size_t at, int64_t k) { std::memcpy(board.mine() + at, data, k * size); });
    peers.meet();
    for (int r = 0; r < peers.size(); ++r) from_[r] = board.of(r);
    if (peers.size() > 2) owners_on_board(peers, how, dtype, n);
    over(chunks, b, n, size, [&](char* data, size_t at, int64_t k) {
      if (peers.size() <= 2) return add_up(how, dtype, at, data, k);
      const size_t end = at + k * size;
      for (int r = 0; r < peers.size(); ++r) {
        const Part part = part_of(n, r, peers.size());
        const size_t from = std::max(at, part.begin * size), to = std::min(end, part.end * size);
        if (from < to) std::memcpy(data + (from - at), board.of(r) + from, to - from);
      }
    });
  }
}

void Collective::owners_on_board(Peers& peers, Combine how, DType dtype, int64_t elems) {
  const auto [begin, end] = part_of(elems, peers.rank(), peers.size());
  const size_t skip = begin * dtype_size(dtype);
  add_up(how, dtype, skip, peers.board()->mine() + skip, end - begin);
  peers.meet();
}

void Collective::all_reduce(Peers& peers, What what, Combine how, std::span<const Chunk> chunks) {
  const auto dtype = static_cast<DType>(what.dtype);
  check_combines(how, dtype);
  what.how = how;
  agree(peers, what);
  if (what.elems == 0) return;
  if (peers.board()) return on_board(peers, how, dtype, chunks);
  Chunk all = chunks[0];
  if (chunks.size() > 1) {
    packed_.room(peers.wire(), what.elems * dtype_size(dtype));
    all = {packed_.memory(), what.elems};
    char* to = packed_.memory();
    for (const Chunk& p : chunks) {
      const size_t bytes = p.elems * dtype_size(dtype);
      if (bytes > 0) std::memcpy(to, p.data, bytes);
      to += bytes;
    }
  }
  const bool small = all.elems * dtype_size(dtype) <= kDirectBytes || all.elems < peers.size();
  peers.size() == 2 || small ? direct(peers, how, dtype, all) : by_owners(peers, how, dtype, all);
  if (chunks.size() == 1) return;
  const char* from = packed_.memory();
  for (const Chunk& p : chunks) {
    const size_t bytes = p.elems * dtype_size(dtype);
    if (bytes > 0) std::memcpy(p.data, from, bytes);
    from += bytes;
  }
}

void Collective::reduce(Peers& peers, What what, Combine how, int root, const Chunk& chunk) {
  const auto dtype = static_cast<DType>(what.dtype);
  check_combines(how, dtype);
  AB_CHECK(root >= 0 && root < peers.size(), InvalidArgument, "root must be from 0 to {}, got {}", peers.size() - 1,
           root);
  what.how = how;
  what.root = root;
  agree(peers, what);
  const size_t bytes = chunk.elems * dtype_size(dtype);
  if (bytes == 0) return;
  if (peers.rank() != root) {
    Region& mine = mine_.over(peers.wire(), chunk.data, bytes);
    peers.send(mine, root, kData, 0, bytes);
    return peers.wait_sent(mine, root);
  }
  for_others(peers, [&](int r) { peers.receive(theirs_[r].room(peers.wire(), bytes), r, kData, 0, bytes); });
  for_others(peers, [&](int r) { peers.wait_received(theirs_[r].region(), r); });
  char* data = static_cast<char*>(chunk.data);
  use_theirs(peers, data);
  add_up(how, dtype, 0, data, chunk.elems);
}

void Collective::reduce_scatter(Peers& peers, What what, Combine how, const Chunk& in, const Chunk& out) {
  const auto dtype = static_cast<DType>(what.dtype);
  check_combines(how, dtype);
  AB_CHECK(in.elems == out.elems * peers.size(), InvalidArgument,
           "reduce_scatter over {} processes makes {} numbers of {}", peers.size(), out.elems, in.elems);
  what.how = how;
  agree(peers, what);
  const size_t bytes = out.elems * dtype_size(dtype);
  if (bytes == 0) return;
  Region& mine = mine_.over(peers.wire(), in.data, bytes * peers.size());
  for_others(peers, [&](int r) {
    peers.receive(theirs_[r].room(peers.wire(), bytes), r, kData, 0, bytes);
    peers.send(mine, r, kData, r * bytes, bytes);
  });
  for_others(peers, [&](int r) { peers.wait_received(theirs_[r].region(), r); });
  for_others(peers, [&](int r) { peers.wait_sent(mine, r); });
  const char* own = static_cast<const char*>(in.data) + peers.rank() * bytes;
  use_theirs(peers, own);
  add_up(how, dtype, 0, static_cast<char*>(out.data), out.elems);
}

void Collective::broadcast(Peers& peers, What what, int root, const Chunk& chunk) {
  AB_CHECK(root >= 0 && root < peers.size(), InvalidArgument, "root must be from 0 to {}, got {}", peers.size() - 1,
           root);
  what.root = root;
  agree(peers, what);
  const size_t bytes = chunk.elems * dtype_size(static_cast<DType>(what.dtype));
  if (bytes == 0) return;
  Region& mine = mine_.over(peers.wire(), chunk.data, bytes);
  if (peers.rank() != root) {
    peers.receive(mine, root, kData, 0, bytes);
    return peers.wait_received(mine, root);
  }
  for_others(peers, [&](int r) { peers.send(mine, r, kData, 0, bytes); });
  for_others(peers, [&](int r) { peers.wait_sent(mine, r); });
}

void Collective::all_gather(Peers& peers, What what, const Chunk& in, const Chunk& out) {
  AB_CHECK(out.elems == in.elems * peers.size(), InvalidArgument, "all_gather over {} processes makes {} numbers of {}",
           peers.size(), out.elems, in.elems);
  agree(peers, what);
  const size_t bytes = in.elems * dtype_size(static_cast<DType>(what.dtype)), all = bytes * peers.size();
  if (bytes == 0) return;
  char* to = static_cast<char*>(out.data);
  char* own = to + peers.rank() * bytes;
  if (own != in.data) std::memcpy(own, in.data, bytes);
  Region& mine = mine_.over(peers.wire(), to, all);
  for_others(peers, [&](int r) {
    peers.receive(into_[r].over(peers.wire(), to, all), r, kData, r * bytes, bytes);
    peers.send(mine, r, kData, peers.rank() * bytes, bytes);
  });
  for_others(peers, [&](int r) { peers.wait_received(into_[r].region(), r); });
  for_others(peers, [&](int r) { peers.wait_sent(mine, r); });
}

std::vector<std::string> Collective::exchange(Peers& peers, const std::vector<std::string_view>& parts) {
  const auto size = static_cast<size_t>(peers.size()), me = static_cast<size_t>(peers.rank());
  AB_CHECK(parts.size() == size, InvalidArgument, "exchange: {} parts for {} processes", parts.size(), size);
  std::vector<int64_t> sizes(size * size);  // [giver, taker]
  for (size_t r = 0; r < size; ++r) sizes[me * size + r] = static_cast<int64_t>(parts[r].size());
  What what(CollectiveKind::kAllGather, DType::kInt64, "sizes");
  all_gather(peers, what, {sizes.data() + me * size, static_cast<int64_t>(size)},
             {sizes.data(), static_cast<int64_t>(size * size)});
  std::vector<std::string> given(size);
  std::vector<std::unique_ptr<Region>> out(size), in(size);
  for (size_t r = 0; r < size; ++r) {
    const int64_t bytes = sizes[r * size + me];
    AB_CHECK(bytes >= 0 && bytes < (int64_t{1} << 40), Internal, "{} gives {} bytes", peers.name(r), bytes);
    given[r].resize(static_cast<size_t>(bytes));
  }
  given[me] = parts[me];
  for_others(peers, [&](int r) {
    if (!given[r].empty()) {
      in[r] = peers.wire().region(given[r].data(), given[r].size());
      peers.receive(*in[r], r, kResult, 0, given[r].size());
    }
    if (!parts[r].empty()) {
      out[r] = peers.wire().region(const_cast<char*>(parts[r].data()), parts[r].size());
      peers.send(*out[r], r, kResult, 0, parts[r].size());
    }
  });
  for_others(peers, [&](int r) {
    if (in[r]) peers.wait_received(*in[r], r);
  });
  for_others(peers, [&](int r) {
    if (out[r]) peers.wait_sent(*out[r], r);
  });
  return given;
}

void Collective::gather(Peers& peers, const void* in, char* out, std::span<const size_t> bytes, int phase) {
  size_t all = 0, before = 0;
  for (int r = 0; r < peers.size(); ++r) {
    if (r == peers.rank()) before = all;
    all += bytes[r];
  }
  if (all == 0) return;
  const size_t own = bytes[peers.rank()];
  if (own > 0) std::memcpy(out + before, in, own);
  Region& mine = mine_.over(peers.wire(), out, all);
  size_t at = 0;
  for (int r = 0; r < peers.size(); at += bytes[r++]) {
    if (r == peers.rank()) continue;
    if (bytes[r] > 0) peers.receive(into_[r].over(peers.wire(), out, all), r, phase, at, bytes[r]);
    if (own > 0) peers.send(mine, r, phase, before, own);
  }
  for_others(peers, [&](int r) {
    if (bytes[r] > 0) peers.wait_received(into_[r].region(), r);
  });
  for_others(peers, [&](int r) {
    if (own > 0) peers.wait_sent(mine, r);
  });
}

}  // namespace anabranch::comm
