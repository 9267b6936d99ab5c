// The kernels of recurrent cells on devices, for all units of all rows of a step.
#include "ops/device/kernels.h"
#include "ops/sequence/cell_numbers.h"

namespace anabranch::device {

template <class K> struct EachUnitOf {
  using Args = typename K::Args;
  template <class T> static int run(const Launch& launch, const Args& a) {
    const sequence::EachUnit<K, T> body(a);
    return each(launch, body.count(), body);
  }
};

template <class... K> bool add_cells() {
  (add_kernels<EachUnitOf<K>, float, double>(K::kName), ...);
  return true;
}
[[maybe_unused]] static const bool cells_added =
    add_cells<sequence::LstmCell, sequence::LstmCellGrad, sequence::GruGates, sequence::GruState,
              sequence::GruStateGrad, sequence::GruResetGrad, sequence::ClippedAct, sequence::ClippedActGrad,
              sequence::KeepRows, sequence::KeepRowsGrad>();

}  // namespace anabranch::device
