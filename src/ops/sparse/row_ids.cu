// The ids that the gradient of a look-up holds rows for, on devices: "row_ids/<id>": as int64, and -1, a pad, where
// they are the padding of the table.
#include "ops/device/args_index.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

struct RowIds {
  using Args = IndexArgs;
  template <class Id> struct Body {
    const Id* ids;
    int64_t* y;
    int64_t padding;
    bool pads;
    AB_HD void operator()(int64_t i) const { y[i] = pads && ids[i] == padding ? -1 : ids[i]; }
  };
  template <class Id> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.ids_count,
                Body<Id>{a.ids.get<Id>(), a.y.get<int64_t>(), a.padding, (a.flags & kHasPadding) != 0});
  }
};

AB_KERNEL("row_ids", RowIds, int32_t, int64_t);

}  // namespace anabranch::device
