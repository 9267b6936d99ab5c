// Sparse rows as devices have them: values and ids in one block of memory, so that one copy moves both. `rows` is empty
// then; the ids, int64_t, lie behind the values. How many rows there are is known when kernels are launched, never read
// from a device. An id of -1 is a pad: its values count for nothing.
#pragma once
#include "core/selected_rows.h"

namespace anabranch {

inline bool in_block(const SelectedRows& rows) { return rows.value.place().kind != PlaceKind::kCpu; }
// Memory for values of this shape, [n, ...], and n ids, at a place that is not the CPU's.
void lay_out_block(SelectedRows* rows, int64_t height, const Shape& values, Kind kind);
// From value.raw() on: the values with the ids, and where the ids begin.
size_t block_bytes(const SelectedRows& rows);
size_t ids_in_block(const SelectedRows& rows);

// Between memory of the CPU and a block in pinned memory. InvalidArgument when an id is not one of the table; pads are
// left out on the way back.
void put_into_block(const SelectedRows& from, SelectedRows* to);
void take_from_block(const SelectedRows& from, SelectedRows* to);

}  // namespace anabranch
