// Loops over rows of tables in the widest vectors of the machine (Highway, chosen at run time), for float and double:
// gathering rows of many tables side by side, and updating rows from their gradients. Every element goes through the
// operations of the plain loops (ops/sequence, ops/optim), each rounded by itself, so the bits are theirs. No threads.
#pragma once
#include <array>
#include <cstdint>

#include "opdef/fused_ops.h"

namespace anabranch::sparse {

using fused::Pool;

// One part of the columns of the result.
template <class T> struct GatherPart {
  const T* table = nullptr;
  int64_t width = 0;                 // of a row of the table
  const int64_t* ids = nullptr;      // null: row r of the result takes row r of `table`
  int64_t per_row = 1;               // ids that stand side by side in a row of the result
  int64_t padding = -1;              // this id reads as zeros
  const int64_t* offsets = nullptr;  // of sequences: row r takes the rows of ids [offsets[r], offsets[r + 1])
  Pool pool = Pool::kNone;
  T empty = 0;               // what an empty sequence gives
  const T* zeros = nullptr;  // `width` of them
  int64_t column = 0;        // where the part begins in a row of the result
  bool shared = false;       // other threads update the table: rows are held while they are read (core/row_locks.h)
};

// Rows [begin, end) of the result, whose rows are `stride` elements apart.
template <class T>
void gather_parts(const GatherPart<T>* parts, int64_t count, int64_t begin, int64_t end, T* out, int64_t stride);

enum class Rule : int32_t { kSgd, kAdagrad, kAdam };

// Distinct rows of a table and their gradients, which may be many: they are added up in the order of the chain.
template <class T> struct RowUpdate {
  Rule rule = Rule::kSgd;
  const int64_t* rows = nullptr;   // `count` distinct ones
  const int32_t* first = nullptr;  // of each row: its first gradient
  const int32_t* next = nullptr;   // of each gradient: the next one of the same row, -1 for the last
  const T* const* grads = nullptr;
  const T* divisors = nullptr;  // of each gradient; null: all are 1
  int64_t count = 0, width = 0;
  T* param = nullptr;
  std::array<T*, 2> state{};  // moments, as many as the rule has
  int64_t stride = 0;         // elements from a row of param or state to the next one
  T rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  bool shared = false;  // other threads use the table: rows are held while they change
};
template <class T> void update_rows(const RowUpdate<T>& u);

}  // namespace anabranch::sparse
