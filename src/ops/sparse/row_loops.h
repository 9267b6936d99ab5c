// Loops over rows of tables in the widest vectors of the machine (Highway, chosen at run time), for float and double:
// gathering rows of several tables side by side, and updating rows from their gradients. Every element takes the
// operations of the plain loops (ops/sequence, ops/optim), each rounded separately, so the bits are the same.
// Single-threaded.
#pragma once
#include <array>
#include <cstdint>

#include "opdef/fused_ops.h"
#include "sparse/update_rules.h"

namespace anabranch::sparse {

using fused::Pool;

// One part of the columns of the result.
template <class T> struct GatherPart {
  const T* table = nullptr;
  int64_t width = 0;                 // of a row of the table
  const int64_t* ids = nullptr;      // null: row r of the result takes row r of `table`
  int64_t per_row = 1;               // ids that are side by side in a row of the result
  int64_t padding = -1;              // id that reads as zeros
  const int64_t* offsets = nullptr;  // of sequences: row r pools the rows of ids [offsets[r], offsets[r + 1])
  Pool pool = Pool::kNone;
  T empty = 0;               // value of an empty sequence
  const T* zeros = nullptr;  // `width` of them
  int64_t column = 0;        // first column of the part in a row of the result
  bool shared = false;       // other threads update the table: locks rows while reading them (core/row_locks.h)
};

// Rows [begin, end) of the result, whose rows are `stride` elements apart.
template <class T>
void gather_parts(const GatherPart<T>* parts, int64_t count, int64_t begin, int64_t end, T* out, int64_t stride);

// Distinct rows of a table and their gradients, of which a row may have several: they are summed in the order of the
// chain.
template <class T> struct RowUpdate : rules::RowStep<T> {
  const int64_t* rows = nullptr;   // `count` distinct ones
  const int32_t* first = nullptr;  // of each row: index of its first gradient
  const int32_t* next = nullptr;   // of each gradient: the next one of the same row, -1 for the last
  const T* const* grads = nullptr;
  const T* divisors = nullptr;  // of each gradient; null: all are 1
  const T* factors = nullptr;   // of each gradient; null: all are 1
  const T* sums = nullptr;      // of the gradients of each row, `width` elements a row; null: they are not summed yet
  int64_t count = 0, width = 0;
  T* param = nullptr;
  std::array<T*, 2> state{};  // moments of the rule
  int64_t stride = 0;         // distance of rows of param or state, in elements
  bool shared = false;        // other threads use the table: locks rows while changing them
};
template <class T> void update_rows(const RowUpdate<T>& u);

}  // namespace anabranch::sparse
