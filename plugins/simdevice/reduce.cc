// Arithmetic of collectives: always in the order of ranks, so that a reduction to one rank has the bits of one to all.
// Ranks of other processes have no recv buffer here.
#include <cstring>

#include "comms.h"
#include "ops/device/element.h"

namespace anabranch::simdevice {
namespace {

using device::Compute;
using device::load;

template <class T> Compute<T> put_together(ab_collective what, Compute<T> a, Compute<T> b) {
  switch (what) {
    case AB_ALL_REDUCE_MAX: return a != a || a > b ? a : b;
    case AB_ALL_REDUCE_MIN: return a != a || a < b ? a : b;
    case AB_ALL_REDUCE_PROD: return static_cast<Compute<T>>(a * b);
    default: return static_cast<Compute<T>>(a + b);
  }
}

template <class T> T element(ab_collective what, const std::vector<const char*>& send, size_t i) {
  T first;
  memcpy(&first, send[0] + i * sizeof(T), sizeof(T));
  Compute<T> all = load(first);
  for (size_t rank = 1; rank < send.size(); ++rank) {
    T next;
    memcpy(&next, send[rank] + i * sizeof(T), sizeof(T));
    all = put_together<T>(what, all, load(next));
  }
  return static_cast<T>(all);
}

// All sums before any is written: ranks may reduce in place.
template <class T>
void reduce(const Round& round, const std::vector<const char*>& send, const std::vector<char*>& recv) {
  const size_t ranks = send.size(), count = round.spec.count;
  const bool scatters = round.spec.what == AB_REDUCE_SCATTER;
  std::vector<char> all((scatters ? ranks : 1) * count * sizeof(T));
  for (size_t i = 0; i < all.size() / sizeof(T); ++i) {
    const T x = element<T>(round.spec.what, send, i);
    memcpy(all.data() + i * sizeof(T), &x, sizeof(T));
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    const char* from = all.data() + (scatters ? rank * count * sizeof(T) : 0);
    if (recv[rank]) memcpy(recv[rank], from, count * sizeof(T));
  }
}

void gather(const std::vector<const char*>& send, const std::vector<char*>& recv, size_t bytes) {
  std::vector<char> all(send.size() * bytes);
  for (size_t rank = 0; rank < send.size(); ++rank) memcpy(all.data() + rank * bytes, send[rank], bytes);
  for (char* to : recv) {
    if (to) memcpy(to, all.data(), all.size());
  }
}

}  // namespace

size_t dtype_bytes(int dtype) {
  switch (dtype) {
    case AB_BOOL:
    case AB_INT8:
    case AB_UINT8: return 1;
    case AB_INT16:
    case AB_FLOAT16:
    case AB_BFLOAT16: return 2;
    case AB_INT32:
    case AB_FLOAT32: return 4;
    case AB_INT64:
    case AB_FLOAT64: return 8;
    default: return 0;
  }
}

const char* dtype_text(int dtype) {
  switch (dtype) {
    case AB_BOOL: return "bool";
    case AB_INT8: return "int8";
    case AB_UINT8: return "uint8";
    case AB_INT16: return "int16";
    case AB_FLOAT16: return "float16";
    case AB_BFLOAT16: return "bfloat16";
    case AB_INT32: return "int32";
    case AB_FLOAT32: return "float32";
    case AB_INT64: return "int64";
    case AB_FLOAT64: return "float64";
    default: return "no dtype";
  }
}

void reduce_round(const Round& round, const std::vector<const char*>& send, const std::vector<char*>& recv) {
  const size_t bytes = round.spec.count * dtype_bytes(round.spec.dtype);
  if (!bytes) return;
  if (round.spec.what == AB_ALL_GATHER) return gather(send, recv, bytes);
  if (round.spec.what == AB_BROADCAST) {
    for (char* to : recv) {
      if (to) memmove(to, send[static_cast<size_t>(round.spec.root)], bytes);
    }
    return;
  }
  switch (round.spec.dtype) {
    case AB_INT8: return reduce<int8_t>(round, send, recv);
    case AB_UINT8: return reduce<uint8_t>(round, send, recv);
    case AB_INT32: return reduce<int32_t>(round, send, recv);
    case AB_INT64: return reduce<int64_t>(round, send, recv);
    case AB_FLOAT16: return reduce<device::half>(round, send, recv);
    case AB_BFLOAT16: return reduce<device::bfloat16>(round, send, recv);
    case AB_FLOAT32: return reduce<float>(round, send, recv);
    case AB_FLOAT64: return reduce<double>(round, send, recv);
    default: fail(AB_UNSUPPORTED, "no ", round.spec.text(), " on devices");
  }
}

}  // namespace anabranch::simdevice
