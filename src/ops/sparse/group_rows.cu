// Groups equal ids on devices: "group_rows/<id>". Sorts by id; equal ids keep their order, so sums over them are
// deterministic.
#include "ops/device/args_index.h"
#include "ops/device/sorting.h"

namespace anabranch::device {

inline int bits_of(int64_t height) {
  int bits = 1;
  while (bits < 64 && (static_cast<uint64_t>(height) >> bits) != 0) ++bits;
  return bits;
}

// The workspace: keys, sorted keys, flags, running sums, positions, then scratch of sorting.
struct GroupSpace {
  uint64_t *keys, *sorted;
  int64_t *flags, *sums;
  int32_t* places;
  void* scratch;
  size_t room;

  static size_t scratch_room(int64_t n, int64_t height) {
    const size_t sort = sort_room(n, bits_of(height)), sum = running_sum_room(n);
    return sort > sum ? sort : sum;
  }
  static size_t scratch_at(int64_t n) { return static_cast<size_t>(n) * 36 / 256 * 256 + 256; }
  GroupSpace(unsigned char* from, int64_t n, int64_t height)
      : keys(reinterpret_cast<uint64_t*>(from)),
        sorted(keys + n),
        flags(reinterpret_cast<int64_t*>(sorted + n)),
        sums(flags + n),
        places(reinterpret_cast<int32_t*>(sums + n)),
        scratch(from + scratch_at(n)),
        room(scratch_room(n, height)) {}
};

// Padding and invalid ids become the height: they sort after all others.
template <class Id> struct MakeKeys {
  const Id* ids;
  GroupSpace space;
  int64_t height;
  FaultReport report;
  AB_HD void operator()(int64_t i) const {
    const int64_t id = ids[i];
    const bool inside = id >= 0 && id < height;
    if (!inside && id != -1) report(1, i);
    space.keys[i] = static_cast<uint64_t>(inside ? id : height);
    space.places[i] = static_cast<int32_t>(i);
  }
};

struct MarkFirst {
  GroupSpace space;
  uint64_t height;
  AB_HD void operator()(int64_t i) const {
    const uint64_t own = space.sorted[i];
    space.flags[i] = own < height && (i == 0 || own != space.sorted[i - 1]);
  }
};

struct WriteGroups {  // for i of [0, n]
  GroupSpace space;
  uint64_t height;
  int64_t n;
  int64_t *rows, *starts, *count;
  AB_HD void operator()(int64_t i) const {
    const bool counts = i < n && space.sorted[i] < height;
    if (counts && space.flags[i]) {
      rows[space.sums[i] - 1] = static_cast<int64_t>(space.sorted[i]);
      starts[space.sums[i] - 1] = i;
    }
    // The first position after all valid ones.
    if (counts || (i > 0 && space.sorted[i - 1] >= height)) return;
    const int64_t groups = i ? space.sums[i - 1] : 0;
    starts[groups] = i;
    *count = groups;
  }
};

struct GroupRows {
  using Args = GroupRowsArgs;
  template <class Id> static size_t room(const Args& a) {
    return GroupSpace::scratch_at(a.n) + GroupSpace::scratch_room(a.n, a.height);
  }
  template <class Id> static int run(const Launch& launch, const Args& a) {
    const GroupSpace space(launch.workspace.get<unsigned char>(), a.n, a.height);
    const auto height = static_cast<uint64_t>(a.height);
    if (a.n > 0) {
      const MakeKeys<Id> make{a.ids.get<Id>(), space, a.height, FaultReport(a.fault)};
      if (const int failed = each(launch, a.n, make)) return failed;
      if (const int failed = sort_keys(launch, space.scratch, space.room, space.keys, space.sorted, space.places,
                                       a.order.get<int32_t>(), a.n, bits_of(a.height))) {
        return failed;
      }
      if (const int failed = each(launch, a.n, MarkFirst{space, height})) return failed;
      if (const int failed = running_sum(launch, space.scratch, space.room, space.flags, space.sums, a.n))
        return failed;
    }
    return each(
        launch, a.n + 1,
        WriteGroups{space, height, a.n, a.rows.get<int64_t>(), a.starts.get<int64_t>(), a.count.get<int64_t>()});
  }
};

AB_KERNEL("group_rows", GroupRows, int32_t, int64_t);

}  // namespace anabranch::device
