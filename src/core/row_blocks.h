// Sparse rows on devices: values and ids in one block of memory, so that one copy moves both. `rows` is then empty; the
// ids, int64_t, follow the values. The number of rows is known when kernels are launched and never read from a device.
// An id of -1 is padding: its values do not count.
#pragma once
#include "core/selected_rows.h"

namespace anabranch {

inline bool in_block(const SelectedRows& rows) { return rows.value.place().kind != PlaceKind::kCpu; }
// Memory for values of this shape, [n, ...], and n ids, at a place other than the CPU.
void lay_out_block(SelectedRows* rows, int64_t height, const Shape& values, Kind kind);
// From value.raw() on: the values with the ids, and the offset of the ids.
size_t block_bytes(const SelectedRows& rows);
size_t ids_in_block(const SelectedRows& rows);

// Copies between CPU memory and a block in pinned memory. InvalidArgument if an id is outside of the table; padding is
// dropped on the way back.
void put_into_block(const SelectedRows& from, SelectedRows* to);
void take_from_block(const SelectedRows& from, SelectedRows* to);

}  // namespace anabranch
